"""Hot loops on flat buffers. This package knows nothing else of dectool; anyone may use it."""

from dectool.kernels._casts import (
    bfloat16_to_float32 as bfloat16_to_float32,
    float16_to_float32 as float16_to_float32,
    float32_to_bfloat16 as float32_to_bfloat16,
    float32_to_float16 as float32_to_float16,
)
from dectool.kernels._extension import threads as threads
from dectool.kernels._largest import (
    at_least as at_least,
    largest_places as largest_places,
    magnitudes as magnitudes,
)
from dectool.kernels._levels import (
    dequantise_levels as dequantise_levels,
    quantise_levels as quantise_levels,
)
from dectool.kernels._minmax import (
    minmax8_add as minmax8_add,
    minmax8_decode as minmax8_decode,
    minmax8_encode as minmax8_encode,
    minmax8_parts as minmax8_parts,
    minmax8_size as minmax8_size,
    minmax8_steps as minmax8_steps,
)
from dectool.kernels._room import empty as empty, empty_like as empty_like
from dectool.kernels._sums import (
    pack_signs as pack_signs,
    row_sums as row_sums,
    unpack_signs as unpack_signs,
)
from dectool.kernels._tiles import TILE as TILE, tiles as tiles
from dectool.kernels._weighted_sum import (
    add_scaled as add_scaled,
    combine as combine,
    divide as divide,
    scale as scale,
    sparse_product as sparse_product,
    weighted_sum as weighted_sum,
)

__all__ = [
    "TILE",
    "add_scaled",
    "at_least",
    "bfloat16_to_float32",
    "combine",
    "dequantise_levels",
    "divide",
    "empty",
    "empty_like",
    "float16_to_float32",
    "float32_to_bfloat16",
    "float32_to_float16",
    "largest_places",
    "magnitudes",
    "minmax8_add",
    "minmax8_decode",
    "minmax8_encode",
    "minmax8_parts",
    "minmax8_size",
    "minmax8_steps",
    "pack_signs",
    "quantise_levels",
    "row_sums",
    "scale",
    "sparse_product",
    "threads",
    "tiles",
    "unpack_signs",
    "weighted_sum",
]
