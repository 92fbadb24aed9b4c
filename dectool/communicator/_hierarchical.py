"""Neighbour averages between nodes of several ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dectool.communicator._groups import GroupOperations
from dectool.communicator._neighborhood import NeighborhoodOperations
from dectool.communicator._parcel import (
    Buffer,
    Layout,
    Parcel,
    average,
    join,
    own,
    same_layout,
    segment,
    unpack,
)
from dectool.communicator._request import Request
from dectool.errors import ArgumentError, UnsupportedOperation
from dectool.topology import Topology


class HierarchicalOperations(NeighborhoodOperations, GroupOperations):
    """The part of a communicator that knows nodes."""

    def ihierarchical_neighbor_allreduce(self, x: Any, topology: Topology) -> Request[Any]:
        """Start a :meth:`hierarchical_neighbor_allreduce`."""
        buffers, layout = self._hierarchical_arguments(x, topology)
        buffers = own(buffers)
        pending = self._background(lambda comm: comm._hierarchical(buffers, layout, topology))
        return Request(self, [pending], lambda results: unpack(results[0], layout))

    def hierarchical_neighbor_allreduce(self, x: Any, topology: Topology) -> Any:
        r"""Average within each node, then between nodes; all ranks of a node get the same.

        .. math:: x_i^+ = \\sum_b W_{ab} \\frac1g \\sum_{j \\in b} x_j \\qquad (i \\in a)

        The node's ranks share the work: each reduces one shard, exchanges it with its peers on
        the neighbouring nodes, and hands it round. The mean runs over local ranks in ascending
        order, each value times 1/g rounded before adding.

        Args:
            x: An array of floats or complex numbers, or a container of them.
            topology: A topology of ``comm.num_nodes`` nodes.

        Returns:
            A new array or container like ``x``.

        Raises:
            ArgumentError: ``topology`` is not one of ``comm.num_nodes`` nodes.
            ArgumentTypeError: ``x`` holds integers or bools.
            UnsupportedOperation: The nodes do not have the same number of ranks.
        """
        buffers, layout = self._hierarchical_arguments(x, topology)
        return unpack(self._hierarchical(buffers, layout, topology), layout)

    # -- how ranks that exchange messages do it ------------------------------------------------

    def _hierarchical_arguments(self, x: Any, topology: Any) -> tuple[tuple[Buffer, ...], Layout]:
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
        return buffers, layout

    def _hierarchical(
        self, buffers: tuple[Buffer, ...], layout: Layout, topology: Topology
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
        parcel, pending = peers._swap(mean, layout, across, "hierarchical")
        mixed = tuple(peers._reduce(parcel, peers._await(pending), across))
        for dest in others:
            node._post(node._owned(mixed, layout), dest, (*channel, "gather"))
        parts = node._await([node._expect(source, (*channel, "gather")) for source in others])
        parts.insert(me, Parcel(mixed, layout))
        return tuple(join([part.buffers[i] for part in parts]) for i in range(len(buffers)))

    def _reduce_parts(
        self, parts: Sequence[Parcel], weights: Sequence[float], layout: Layout
    ) -> tuple[Buffer, ...]:
        return tuple(
            average(weights, [part.buffers[index] for part in parts], dtype)
            for index, dtype in enumerate(layout.dtypes)
        )
