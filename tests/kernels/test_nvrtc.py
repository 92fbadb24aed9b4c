"""The kernels for the CPU are kernels for CUDA too; compiling them needs no GPU."""

from __future__ import annotations

import ctypes
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from dectool import kernels

HEADERS = Path(kernels.__file__).parent
OPTIONS = ["--fmad=false", "--std=c++17", f"--include-path={HEADERS}"]


@pytest.fixture(scope="module")
def nvrtc() -> ctypes.CDLL:
    found = find_spec("nvidia")
    places = list(found.submodule_search_locations or ()) if found else []
    for place in places:
        for library in sorted(Path(place).glob("*/lib/libnvrtc.so.*")):
            if "alt" not in library.name:
                return ctypes.CDLL(str(library))
    pytest.skip("nvrtc is not installed: pip install 'dectool[nvrtc]'")


def compiled(nvrtc: ctypes.CDLL, source: str, architecture: str) -> tuple[str, str]:
    """Return the PTX of a source, or "" and what the compiler says."""
    program = ctypes.c_void_p()
    name, none = b"kernels.cu", None
    assert not nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name, 0, none, none)
    options = [*OPTIONS, f"--gpu-architecture={architecture}"]
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = nvrtc.nvrtcCompileProgram(program, len(options), given)
    texts = []
    for what in ("PTX", "ProgramLog"):
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value + 1)
        if not (failed and what == "PTX"):
            getattr(nvrtc, f"nvrtcGet{what}")(program, text)
        texts.append(text.value.decode())
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return texts[0], texts[1]


@pytest.mark.parametrize("architecture", ["compute_75", "compute_90"])
def test_the_header_compiles_for_cuda(nvrtc: ctypes.CDLL, architecture: str) -> None:
    ptx, log = compiled(nvrtc, '#include "compression.h"\n', architecture)
    assert ptx, log
    assert "warning" not in log
    names = set(re.findall(r"\.entry (\w+)", ptx))
    for kind in ("float32", "float64"):
        assert {
            f"dectool_cuda_minmax_encode_{kind}",
            f"dectool_cuda_minmax_decode_{kind}",
            f"dectool_cuda_pack_signs_{kind}",
        } <= names
    assert {"dectool_narrow_float16", "dectool_widen_bfloat16"} <= names


def test_products_are_rounded_on_their_own(nvrtc: ctypes.CDLL) -> None:
    """In what NVRTC makes of the formulas; division has its own fused steps, inside the driver."""
    ptx, log = compiled(nvrtc, '#include "compression.h"\n', "compute_75")
    assert ptx, log
    assert not re.findall(r"\bfma\.rn\.f\d\d.*", ptx)


def test_a_mistake_is_reported(nvrtc: ctypes.CDLL) -> None:
    ptx, log = compiled(nvrtc, '#include "compression.h"\nint broken = ;\n', "compute_75")
    assert not ptx
    assert "error" in log
