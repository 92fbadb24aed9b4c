"""Hot loops go tile by tile: no temporary is as large as the numbers."""

import tracemalloc

import numpy as np
import pytest

from dectool import compression

MIB = 2**20


def peak(function):
    tracemalloc.start()
    try:
        result = function()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    ["identity", "cast:float16", "cast:bfloat16", "minmax8", "minmax8:1024", "qsgd:4", "natural",
     "sign", "topk:0.01", "threshold:2.5", "moniqua:1", "topk:0.01|qsgd:4"],
)  # fmt: skip
def test_no_temporary_of_full_size(text):
    x = np.random.default_rng(0).normal(size=4 * MIB).astype(np.float32)
    c = compression.get(text)
    rng = np.random.default_rng(0)
    payload, used = peak(lambda: c.compress(x, rng))
    assert used - payload.nbytes < 3 * MIB
    reference = (x,) if c.needs_reference else ()
    back, used = peak(lambda: c.decompress(payload, *reference))
    assert used - back.nbytes < 2.5 * MIB
