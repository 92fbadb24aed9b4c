"""The C extensions, which are optional: without a compiler, NumPy does the same, slower."""

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

FLAGS = ["-O3", "-ffp-contract=off"]
"""Products must be rounded before they are added, or the bits would differ between backends."""

HEADERS = sorted(
    str(path) for folder in ("dectool/kernels", "backends/mpi") for path in Path(folder).glob("*.h")
)

THREADS = "-fopenmp"


class BuildWithThreads(build_ext):
    """Builds the kernels with OpenMP where the compiler has it, else without."""

    def build_extension(self, ext: Extension) -> None:
        """Try with threads first."""
        if ext.name != "dectool.kernels._native":
            super().build_extension(ext)
            return
        plain = ext.extra_compile_args, ext.extra_link_args
        ext.extra_compile_args, ext.extra_link_args = ([*args, THREADS] for args in plain)
        try:
            super().build_extension(ext)
        except (CompileError, LinkError):
            ext.extra_compile_args, ext.extra_link_args = plain
            super().build_extension(ext)


setup(
    cmdclass={"build_ext": BuildWithThreads},
    ext_modules=[
        Extension(
            name,
            [source],
            depends=HEADERS,
            extra_compile_args=FLAGS,
            libraries=["m"],
            py_limited_api=True,
            optional=True,
        )
        for name, source in {
            "dectool.kernels._native": "dectool/kernels/_native.c",
            "dectool.backends.mpi._board": "backends/mpi/_board.c",
            "dectool.backends.mpi._cell": "backends/mpi/_cell.c",
            "dectool.backends.mpi._hall": "backends/mpi/_hall.c",
        }.items()
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
