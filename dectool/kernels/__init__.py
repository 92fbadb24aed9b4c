"""Hot loops on flat buffers. This package knows nothing else of dectool; anyone may use it."""

from dectool.kernels._casts import (
    bfloat16_to_float32 as bfloat16_to_float32,
    float32_to_bfloat16 as float32_to_bfloat16,
)
from dectool.kernels._weighted_sum import (
    combine as combine,
    divide as divide,
    scale as scale,
    sparse_product as sparse_product,
    weighted_sum as weighted_sum,
)

__all__ = [
    "bfloat16_to_float32",
    "combine",
    "divide",
    "float32_to_bfloat16",
    "scale",
    "sparse_product",
    "weighted_sum",
]
