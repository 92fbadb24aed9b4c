"""The mean over ranks, compressed on the way to it and on the way back, with error feedback."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool.algorithms._compressed import Sent, compress
from dectool.communicator import Communicator
from dectool.compression import Compressor, Payload
from dectool.errors import ArgumentError

Errors = tuple[Any, Any]
"""What this rank's messages lacked, and what the mean of its own block lacked."""


def first_errors(comm: Communicator, x: Any) -> Errors:
    """Return errors of zero, for arrays like ``x``."""
    block = -(-x.shape[-1] // comm.size)
    return 0.0 * x, np.zeros((*x.shape[:-1], block), x.dtype)


def mean_with_feedback(
    comm: Communicator, v: Any, errors: Errors, compressor: Any, draws: int
) -> tuple[Any, Errors, int]:
    r"""Return the mean, the next errors, and the number of vectors compressed at random.

    .. math:: c_i = C(v_i + e_i), \quad e_i \leftarrow v_i + e_i - c_i, \qquad
       \bar c = C(\tfrac1n \sum_i c_i + \bar e), \quad
       \bar e \leftarrow \tfrac1n \sum_i c_i + \bar e - \bar c

    in n equal blocks, of which rank r averages block r; the last is filled up with zeros.

    Raises:
        ArgumentError: The size of what the compressor sends depends on the data.
    """
    if not compressor.fixed_size:
        raise ArgumentError(
            f"{compressor.name}: how much it sends depends on the data, but all blocks must take "
            "the same room; use a compressor of fixed size, such as sign"
        )
    size, d = comm.size, v.shape[-1]
    block = -(-d // size)
    wanted = v + errors[0]
    filled = np.zeros((*v.shape[:-1], size * block), v.dtype)
    filled[..., :d] = wanted
    sent: list[Sent] = []
    for rank in range(size):
        one = np.ascontiguousarray(filled[..., rank * block : (rank + 1) * block])
        sent.append(compress(comm, one, compressor, draws))
        draws = sent[-1].draws
    error = wanted - np.concatenate([one.value for one in sent], axis=-1)[..., :d]
    like = sent[0].payload
    wire = np.stack([_bytes(one.payload) for one in sent], axis=-2)
    blocks = _read(comm.alltoall(wire), compressor, like)
    total = blocks[0]
    for other in blocks[1:]:
        total = total + other
    mean = total / size + errors[1]
    back = compress(comm, mean, compressor, draws)
    # What fills up the last block is no number of anyone's, so nothing is owed there.
    inside = comm.per_rank(lambda rank: (rank * block + np.arange(block) < d).astype(v.dtype))
    mean_error = (mean - back.value) * inside
    means = _read(comm.allgather(_bytes(back.payload)), compressor, like)
    return np.concatenate(means, axis=-1)[..., :d], (error, mean_error), back.draws


def _bytes(payload: Payload) -> Any:
    """Return the bytes of a payload, behind its leading axes."""
    return np.asarray(payload.data).reshape(*payload.lead, -1)


def _read(wire: Any, compressor: Compressor, like: Payload) -> list[Any]:
    """Return what the payloads stand for whose bytes lie along the last but one axis."""
    rows = [np.ascontiguousarray(wire[..., source, :]) for source in range(wire.shape[-2])]
    return [
        compressor.decompress(
            Payload(compressor, row.reshape(-1, row.shape[-1]), like.leaf, like.lead)
        )
        for row in rows
    ]
