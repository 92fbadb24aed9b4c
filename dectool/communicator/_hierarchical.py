"""Neighbour averages between nodes of several ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dectool.communicator._buckets import Buckets
from dectool.communicator._encode import checked_compressor, encode
from dectool.communicator._groups import GroupOperations
from dectool.communicator._layout import share_layout
from dectool.communicator._pair_gossip import PairOperations
from dectool.communicator._parcel import (
    Buffer,
    Layout,
    Parcel,
    average,
    dense,
    join,
    own,
    row_bytes,
    same_layout,
    segment,
    unpack,
)
from dectool.communicator._plans import NeighborPlan
from dectool.communicator._request import Request
from dectool.errors import ArgumentError, UnsupportedOperation
from dectool.topology import Topology

Coding = tuple[Any, int]
"""A compressor, and the number of the generator that it draws from."""

HIERARCHICAL = "compressed hierarchical"


class HierarchicalOperations(PairOperations, GroupOperations):
    """The part of a communicator that knows nodes."""

    def ihierarchical_neighbor_allreduce(
        self, x: Any, topology: Topology, *, compressor: Any = None
    ) -> Request[Any]:
        """Start a :meth:`hierarchical_neighbor_allreduce`."""
        if type(x) is Buckets:
            return x.start(self.ihierarchical_neighbor_allreduce, topology, compressor=compressor)
        buffers, layout = self._hierarchical_arguments(x, topology, compressor)
        buffers = own(buffers)
        coding = self._coding(compressor)
        return self._in_background(
            lambda comm: comm._hierarchical(buffers, layout, topology, coding),
            lambda mixed: unpack(mixed, layout, self._lead_shape),
        )

    def hierarchical_neighbor_allreduce(
        self, x: Any, topology: Topology, *, compressor: Any = None
    ) -> Any:
        r"""Average within each node, then between nodes; all ranks of a node get the same.

        .. math:: x_i^+ = \sum_b W_{ab} \frac1g \sum_{j \in b} x_j \qquad (i \in a)

        The node's ranks share the work: each reduces one shard, exchanges it with its peers on
        the neighbouring nodes, and hands it round. The mean runs over local ranks in ascending
        order, each value times 1/g rounded before adding.

        With a compressor C what goes between nodes is compressed, and a node's own mean m stays
        exact: :math:`W_{aa} m_a + \sum_{b \ne a} W_{ab} C(m_b)`. Each of the g ranks of a
        node compresses its shard (of m elements of each dtype, rank r those from m r // g on).

        Args:
            x: An array of floats or complex numbers, or a container of them.
            topology: A topology of ``comm.num_nodes`` nodes.
            compressor: A :class:`dectool.compression.Compressor` for what goes between nodes.

        Returns:
            A new array or container like ``x``.

        Raises:
            ArgumentError: ``topology`` is not one of ``comm.num_nodes`` nodes.
            ArgumentTypeError: ``x`` holds integers or bools.
            UnsupportedOperation: The nodes do not have the same number of ranks.
        """
        if type(x) is Buckets:
            return x.each(self.hierarchical_neighbor_allreduce, topology, compressor=compressor)
        buffers, layout = self._hierarchical_arguments(x, topology, compressor)
        mixed = self._hierarchical(buffers, layout, topology, self._coding(compressor))
        return unpack(mixed, layout, self._lead_shape)

    # -- how ranks that exchange messages do it ------------------------------------------------

    def _hierarchical_arguments(
        self, x: Any, topology: Any, compressor: Any
    ) -> tuple[tuple[Buffer, ...], Layout]:
        if self.size % self.local_size:
            raise UnsupportedOperation(
                f"hierarchical operations need nodes of equal size: {self.size} ranks do not "
                f"fill nodes of {self.local_size}"
            )
        nodes = topology.size if isinstance(topology, Topology) else None
        if nodes != self.num_nodes:
            raise ArgumentError(
                f"topology is {topology!r}; a hierarchical operation needs a Topology of the "
                f"{self.num_nodes} nodes"
            )
        buffers, layout = self._pack(x)
        layout.require_averageable("hierarchical_neighbor_allreduce")
        if compressor is None:
            return buffers, layout
        checked_compressor(compressor, "hierarchical_neighbor_allreduce")
        return dense(buffers, layout)

    def _coding(self, compressor: Any) -> Coding | None:
        return None if compressor is None else (compressor, self._next_sequence(HIERARCHICAL))

    def _hierarchical(
        self,
        buffers: tuple[Buffer, ...],
        layout: Layout,
        topology: Topology,
        coding: Coding | None = None,
    ) -> tuple[Buffer, ...]:
        node, peers = self.node, self.peers_across_nodes
        group, me = node.size, node.rank
        cuts = [[b.size * rank // group for rank in range(group + 1)] for b in buffers]

        def shard(owner: int) -> tuple[Buffer, ...]:
            return tuple(
                segment(b, c[owner], c[owner + 1]) for b, c in zip(buffers, cuts, strict=True)
            )

        others = [rank for rank in range(group) if rank != me]
        channel = (*node._context, "hierarchical", node._next_sequence("hierarchical"))
        for dest in others:
            node._post(node._owned(shard(dest), layout), dest, (*channel, "scatter"))
        parts = node._await([node._expect(source, (*channel, "scatter")) for source in others])
        for source, part in zip(others, parts, strict=True):
            same_layout(layout, part.layout, f"local ranks {me} and {source}")
        parts.insert(me, Parcel(shard(me), layout))
        mean = self._reduce_parts(parts, (1.0 / group,) * group, layout)
        across = peers._plan(topology, None, None, None)
        if coding is None:
            parcel, pending = peers._swap(mean, layout, across, "hierarchical")
            mixed = tuple(peers._reduce(parcel, peers._await(pending), across))
        else:
            spans = [(c[me], c[me + 1]) for c in cuts]
            block = share_layout(layout, spans, coding[0].per_tensor)
            mixed = self._mixed_across(peers, across, mean, block, coding)
        for dest in others:
            node._post(node._owned(mixed, layout), dest, (*channel, "gather"))
        parts = node._await([node._expect(source, (*channel, "gather")) for source in others])
        parts.insert(me, Parcel(mixed, layout))
        return tuple(join([part.buffers[i] for part in parts]) for i in range(len(buffers)))

    def _mixed_across(
        self,
        peers: Any,
        across: NeighborPlan,
        mean: tuple[Buffer, ...],
        block: Layout,
        coding: Coding,
    ) -> tuple[Buffer, ...]:
        """Trade compressed shards between nodes; return their weighted sum."""
        compressor, number = coding
        rng = self.rng(HIERARCHICAL, number)
        coded = encode(mean, block, compressor, rng, (), "hierarchical_neighbor_allreduce")
        self._spend("compress", row_bytes(mean))
        request: Request[tuple[Buffer, ...]] = peers._start_coded_exchange(
            coded,
            across,
            "hierarchical",
            lambda edges: tuple(peers._mixed(edges, block, across, mean)),
            mean,
        )
        return request.wait()

    def _reduce_parts(
        self, parts: Sequence[Parcel], weights: Sequence[float], layout: Layout
    ) -> tuple[Buffer, ...]:
        return tuple(
            average(weights, [part.buffers[index] for part in parts], dtype)
            for index, dtype in enumerate(layout.dtypes)
        )
