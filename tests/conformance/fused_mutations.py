"""Mistakes of buckets."""

from __future__ import annotations

from typing import Any

from dectool.communicator import _bucket, _buckets, _compressed, _parcel
from dectool.communicator._bucket import Bucket
from tests.conformance.planting import Mutation, instead, replace


def one_element_early(original: Any) -> Any:
    """Look for each array but the first one element before where it lies."""

    def mutant(buffer: Any, start: int, stop: int) -> Any:
        return original(buffer, max(0, start - 1), stop - 1 if start else stop)

    return mutant


def in_the_order_of_buckets(original: Any) -> Any:
    def mutant(structure: Any, pieces: Any) -> Any:
        return original(structure, iter(list(pieces)[::-1]))

    return mutant


def split_in_two(original: Any) -> Any:
    """Cut a bucket's limit in half."""
    return lambda leaves, align=1, limit=None: original(leaves, align, limit and limit // 2)


def without_gaps(original: Any) -> Any:
    return property(lambda self: sum(self.layout.groups[0].counts) * self._buffer.itemsize)


FUSED_MUTATIONS: dict[str, list[Mutation]] = {
    "buckets_give_the_bits_of_single_arrays": [
        replace(_bucket, "columns", one_element_early),
        replace(_buckets._tree, "unflatten", in_the_order_of_buckets),
    ],
    "a_bucket_is_one_message_with_its_gaps": [
        replace(_buckets, "lay_out", split_in_two),
        replace(Bucket, "nbytes", without_gaps),
    ],
    "what_is_between_arrays_is_not_compressed": [
        instead(_compressed, "dense", lambda buffers, layout: (buffers, layout)),
        replace(_parcel, "columns", one_element_early),
    ],
}
"""By the check that finds them."""
