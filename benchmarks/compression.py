"""Compressors on 16 million float32, against a copy of them by as many threads.

Speeds are of the float32 on the one side: a compressor reads those bytes, and a decompressor
writes them. The copy goes into an array that is kept. The result of a compressor is dropped before
the next one is made, as in use; kernels that can write into an array of the caller's have rows of
their own.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks._table import Row, compare, interleaved, main
from dectool import compression, kernels

COUNT = 1 << 24
REPETITIONS = 9
KEPT = 0.01

BUDGET = 0.8
"""Share of the speed of a copy."""

WITH_BUDGET = ("minmax8", "minmax8:2048", "sign", "cast:float16", "cast:bfloat16")
OTHERS = (
    "topk:0.01",
    "randomk:0.01",
    "threshold:2.5",
    "qsgd:4",
    "natural",
    "lowrank:2",
    "topk:0.01|qsgd:4",
)


def measure(tell: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    """Measure all compressors."""
    x = np.random.default_rng(0).normal(size=COUNT).astype(np.float32)
    threads = kernels.threads(COUNT)
    rows = []
    with ThreadPoolExecutor(threads) as pool:
        copy = _copy(pool, threads, x)
        for name in (*WITH_BUDGET, *OTHERS):
            tell(name)
            rows += _compressor(name, x, copy)
        tell("kernels")
        rows += _kernels(x, copy)
    tell("selection")
    rows.append(_selection(x))
    return rows, [
        f"{COUNT:,} float32, {threads} thread(s) for the kernels in C and for the copy; medians of "
        f"{REPETITIONS}, in turn.",
        "qsgd and natural draw a random number for each element, in one thread of NumPy.",
    ]


def _copy(pool: ThreadPoolExecutor, threads: int, x: np.ndarray) -> Callable[[], object]:
    """Return a copy of x into an array that is kept, by threads."""
    target = np.empty_like(x)
    pairs = list(zip(np.array_split(target, threads), np.array_split(x, threads), strict=True))
    if threads == 1:
        return lambda: np.copyto(target, x)
    return lambda: list(pool.map(lambda pair: np.copyto(*pair), pairs))


def _speed(seconds: float) -> float:
    return 4e-9 * COUNT / seconds


def _compressor(name: str, x: np.ndarray, copy: Callable[[], object]) -> list[Row]:
    compressor, rng = compression.get(name), np.random.default_rng(0)
    assert isinstance(compressor, compression.Compressor)
    payload = compressor.compress(x, rng)
    seconds = interleaved(
        {
            "copy": copy,
            "compress": lambda: compressor.compress(x, rng),
            "decompress": lambda: compressor.decompress(payload),
        },
        repetitions=REPETITIONS if name in WITH_BUDGET else 5,
    )
    budget = BUDGET if name in WITH_BUDGET else None
    return [
        compare(
            f"{name}, {way}; copy",
            _speed(seconds[way]),
            _speed(seconds["copy"]),
            ratio_at_least=budget,
        )
        for way in ("compress", "decompress")
    ]


def _kernels(x: np.ndarray, copy: Callable[[], object]) -> list[Row]:
    """Time what writes into arrays that are kept."""
    total, halves, rows = np.zeros_like(x), np.empty(COUNT, np.uint16), x[None]
    candidates: dict[str, Callable[[], object]] = {}
    for block, text in ((COUNT, "one chunk"), (2048, "chunks of 2048")):
        data = kernels.minmax8_encode(rows, block, "float32")
        candidates[f"dequantise and add, {text}"] = lambda data=data, block=block: (
            kernels.minmax8_add(data, total[None], block, "float32", 0.5)
        )
    short = halves.view(np.float16)
    candidates |= {
        "float32 to float16": lambda: kernels.float32_to_float16(x, short),
        "float16 to float32": lambda: kernels.float16_to_float32(short, total),
        "float32 to bfloat16": lambda: kernels.float32_to_bfloat16(x, halves),
        "bfloat16 to float32": lambda: kernels.bfloat16_to_float32(halves, total),
    }
    seconds = interleaved({"copy": copy, **candidates}, repetitions=REPETITIONS)
    return [
        compare(
            f"{name}; copy",
            _speed(seconds[name]),
            _speed(seconds["copy"]),
            ratio_at_least=BUDGET,
        )
        for name in candidates
    ]


def _selection(x: np.ndarray) -> Row:
    """Compare with NumPy, which is given the magnitudes and gives the places in any order."""
    sizes, k = np.abs(x), int(KEPT * COUNT)
    seconds = interleaved(
        {
            "ours": lambda: kernels.largest_places(x[None], k),
            "numpy": lambda: np.argpartition(sizes, COUNT - k)[COUNT - k :],
        },
        repetitions=5,
    )
    return compare(
        f"places of the largest {KEPT:.0%}; numpy.argpartition",
        _speed(seconds["ours"]),
        _speed(seconds["numpy"]),
        ratio_at_least=1.0,
    )


if __name__ == "__main__":
    main("Compression of float32", measure, unit="GB/s")
