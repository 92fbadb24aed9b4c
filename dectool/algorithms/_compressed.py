"""What algorithms share that send compressed values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, NamedTuple

from dectool import compression
from dectool.algorithms._algorithm import Algorithm
from dectool.communicator import Communicator
from dectool.compression import Compressor, Payload
from dectool.errors import ArgumentTypeError
from dectool.topology import Topology, complete

Compression = Compressor | str | Callable[[int], Compressor]
"""A compressor, its name, or a function of the step number that gives one."""


class Sent(NamedTuple):
    """A compressed vector.

    Attributes:
        payload: What travels.
        value: What it stands for at whoever reads it, the sender included.
        draws: How many vectors were compressed at random by now.
    """

    payload: Payload
    value: Any
    draws: int


@dataclass(frozen=True)
class CompressedAlgorithm(Algorithm):
    """An algorithm with a field ``compressor``, which may be given by its name.

    Randomness follows from the number of vectors that were compressed at random, which the state
    keeps as ``draws``, so that a run that is resumed draws what it would have drawn.
    """

    def __post_init__(self) -> None:
        """Check the step size, and read the compressor's name."""
        super().__post_init__()
        given: Any = getattr(self, "compressor", None)
        if given is not None and not callable(given):
            object.__setattr__(self, "compressor", _plain(type(self).__name__, given))

    def parameters(self) -> dict[str, Any]:
        """Return the hyper-parameters by name; compressors by theirs."""
        shown = super().parameters()
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Compressor):
                shown[field.name] = value.name
        return shown

    def _send(self, comm: Communicator, v: Any, draws: int) -> Sent:
        """Compress ``v``; each rank's array is one vector."""
        compressor: Any = getattr(self, "compressor", None)
        return compress(comm, v, compressor, draws)


def compress(comm: Communicator, v: Any, compressor: Compressor, draws: int) -> Sent:
    """Compress ``v`` with the random numbers of (seed, rank, ``draws``)."""
    number = draws if compressor.uses_rng else None
    payload: Payload = comm.compress(v, compressor, number=number)
    return Sent(payload, compressor.decompress(payload), draws + compressor.uses_rng)


def pull(comm: Communicator, sent: Sent, topology: Topology | None = None) -> Any:
    r"""Return :math:`\sum_j W_{ij} (q_j - q_i)` of what was sent.

    Algorithms that hold replicas of their neighbours use nothing of them but
    :math:`\sum_j W_{ij} (\hat x_j - \hat x_i)`. As W is linear and does not change, that sum moves
    as the replicas do: where each moves by q, it moves by this. Kept in place of the replicas, it
    needs one array however many neighbours there are, and as the ranks come to agree, it and its
    rounding errors tend to zero; those of :math:`\sum_j W_{ij} \hat x_j` would add up.
    """
    return comm.neighbor_allreduce(sent.payload, topology) - sent.value


def mean_over_ranks(comm: Communicator, payload: Payload) -> Any:
    """Return the mean of what all ranks' payloads stand for; each goes to every other rank."""
    return comm.neighbor_allreduce(payload, _everyone(comm.size))


@lru_cache(maxsize=8)
def _everyone(size: int) -> Topology:
    return complete(size)


def _plain(who: str, given: Any) -> Compressor:
    """Return a compressor without memory.

    Raises:
        ArgumentTypeError: It is something else.
    """
    made = compression.get(given) if isinstance(given, str) else given
    if isinstance(made, compression.StatefulCompressor):
        raise ArgumentTypeError(
            f"{who}: compressor {made.name} has a memory, but the algorithm keeps its own; give "
            f"what it wraps, {made.wire.name}"
        )
    if not isinstance(made, Compressor):
        raise ArgumentTypeError(
            f"{who}: compressor is {given!r}; give one of dectool.compression, such as "
            "compression.TopK(0.01), or its name, such as 'topk:0.01'"
        )
    if made.needs_reference:
        raise ArgumentTypeError(
            f"{who}: {made.name} can only be read beside a vector that is near; use "
            "algorithms.Moniqua for it, or another compressor"
        )
    return made
