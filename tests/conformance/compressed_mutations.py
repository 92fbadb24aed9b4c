"""Mistakes of operations that compress what is sent."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool.communicator import (
    _coded,
    _compressed,
    _compressed_collectives,
    _encode,
    _parcel,
)
from dectool.communicator._compressed_collectives import CompressedCollectives
from dectool.communicator._hierarchical import HierarchicalOperations
from dectool.compression import PerTensor
from dectool.sim._communicator import SimCommunicator
from tests.conformance.arithmetic_mutations import backwards
from tests.conformance.planting import Mutation, instead, last_first, replace


def halved(original: Any) -> Any:
    return lambda self, wire, near: tuple(0.5 * buffer for buffer in original(self, wire, near))


def backwards_pieces(original: Any) -> Any:
    return lambda pieces: original(pieces[::-1])


def as_it_is(original: Any) -> Any:
    """Give the root its own array, not what it has sent."""

    def mutant(self: Any, buffers: Any, layout: Any, root: int, *rest: Any) -> Any:
        data = original(self, buffers, layout, root, *rest)
        return buffers if self.rank == root else data

    return mutant


def one_number_less(original: Any) -> Any:
    """Compress with half the share of the numbers that are to be kept."""

    def mutant(buffers: Any, layout: Any, compressor: Any) -> Any:
        for buffer in buffers:
            buffer[np.argmax(np.abs(buffer))] *= 0.5
        return original(buffers, layout, compressor)

    return mutant


def first_payload(original: Any) -> Any:
    return lambda self, index: original(self, 0)


def uncompressed_between_nodes(original: Any) -> Any:
    return lambda self, buffers, layout, topology, coding=None: original(
        self, buffers, layout, topology, None
    )


def own_compressed_too(original: Any) -> Any:
    """Put what one's own payload stands for in the place of one's own mean."""

    def mutant(self: Any, peers: Any, across: Any, mean: Any, block: Any, coding: Any) -> Any:
        coded = _encode.encode(mean, block, coding[0], self.rng("other"), (), "mutant")
        return original(self, peers, across, coded.decompressed(), block, coding)

    return mutant


def by_calls_alone(original: Any) -> Any:
    return lambda self, number: original(self, None)


COMPRESSED_MUTATIONS: dict[str, list[Mutation]] = {
    "neighbors_receive_what_payloads_stand_for": [
        replace(_coded.Coded, "received", halved),
        instead(_compressed, "own", lambda buffers: tuple(np.zeros_like(b) for b in buffers)),
        replace(_parcel, "weighted_sum", backwards),
    ],
    "payloads_are_averaged_and_gathered": [
        replace(_compressed, "stack", last_first),
        replace(_coded.Coded, "received", halved),
    ],
    "partners_trade_payloads": [replace(_coded.Coded, "received", halved)],
    "compressed_allreduce_averages_blocks_twice_compressed": [
        replace(_compressed_collectives, "divide", lambda original: lambda total, n, dtype: total),
        replace(_parcel, "weighted_sum", backwards),
        replace(_compressed_collectives, "join", backwards_pieces),
    ],
    "compressed_broadcast_gives_what_the_root_sent": [
        replace(CompressedCollectives, "_coded_broadcast", as_it_is)
    ],
    "bytes_sent_counts_payloads": [
        instead(SimCommunicator, "bytes_sent", property(lambda self: 8 * len(self._sequence)))
    ],
    "containers_are_compressed_by_dtype": [replace(_encode, "vectors", one_number_less)],
    "neighbors_receive_what_their_row_stands_for": [
        replace(_coded.Coded, "row", first_payload),
        replace(_coded.Coded, "received", halved),
        replace(_compressed, "stack", last_first),
    ],
    "nodes_receive_what_shards_stand_for": [
        replace(HierarchicalOperations, "_hierarchical", uncompressed_between_nodes),
        replace(HierarchicalOperations, "_mixed_across", own_compressed_too),
        replace(_coded.Coded, "received", halved),
    ],
    "arrays_of_a_container_are_compressed_by_themselves": [
        instead(PerTensor, "per_tensor", False),
        replace(_coded, "join", backwards_pieces),
    ],
    "an_allreduce_draws_by_its_number": [replace(CompressedCollectives, "_calls", by_calls_alone)],
}
"""By the check that finds them."""
