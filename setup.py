"""The C extensions, which are optional: without a compiler, NumPy does the same, slower."""

from setuptools import Extension, setup

FLAGS = ["-O3", "-ffp-contract=off"]
"""Products must be rounded before they are added, or the bits would differ between backends."""

HEADER = "dectool/kernels/weighted_sum.h"

setup(
    ext_modules=[
        Extension(
            name,
            [source],
            depends=[HEADER],
            extra_compile_args=FLAGS,
            py_limited_api=True,
            optional=True,
        )
        for name, source in {
            "dectool.kernels._native": "dectool/kernels/_native.c",
            "dectool.backends.mpi._board": "backends/mpi/_board.c",
        }.items()
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
