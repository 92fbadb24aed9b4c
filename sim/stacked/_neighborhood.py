"""What neighbours do, for all ranks at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from dectool.communicator import Communicator, Request
from dectool.communicator._arrays import Buffer, Phantom
from dectool.communicator._parcel import Layout, row_bytes, unpack
from dectool.communicator._plans import checked_weight
from dectool.errors import ArgumentError, ContractError
from dectool.sim.stacked._clocks import Clocks
from dectool.sim.stacked._done import Done, take
from dectool.sim.stacked._plan import StackedPlan, given_plan, one_per_rank
from dectool.topology import Topology


class StackedNeighborhood(Communicator):
    """The part of the stacked communicator that mixes rows."""

    _clocks: Clocks
    _stacked_plans: dict[int, tuple[Topology, StackedPlan]]

    def _plan(self, topology: Any, self_weight: Any, src_weights: Any, dst_weights: Any) -> Any:
        if self_weight is None and src_weights is None and dst_weights is None:
            chosen: Any = self._topology if topology is None else topology
            cached = self._stacked_plans.get(id(chosen))
            if cached is not None and cached[0] is chosen:
                return cached[1]
            chosen = self.topology if topology is None else self._checked_topology(topology)
            plan = StackedPlan(chosen.W)
            if len(self._stacked_plans) > 256:
                self._stacked_plans.clear()
            self._stacked_plans[id(chosen)] = (chosen, plan)
            return plan
        return self._given(topology, self_weight, src_weights, dst_weights)

    def _given(self, topology: Any, self_weight: Any, src_weights: Any, dst_weights: Any) -> Any:
        if (self_weight is None) != (src_weights is None):
            raise ArgumentError(
                f"self_weight={self_weight} and src_weights={src_weights}: "
                "give both or neither, since they share one sum"
            )
        ranks = range(self.size)
        own: list[float | None]
        if self_weight is None:
            chosen = self.topology if topology is None else self._checked_topology(topology)
            own = [chosen.self_weight(r) if r in chosen.row(r)[0] else None for r in ranks]
            sources = [{s: w for s, w in zip(*chosen.row(r), strict=True) if s != r} for r in ranks]
        else:
            given = np.broadcast_to(np.asarray(self_weight, np.float64), self.size)
            own = [checked_weight(w, f"self_weight[{r}]") for r, w in enumerate(given)]
            per_rank = one_per_rank(src_weights, self.size, "src_weights")
            sources = [self._checked_weights(r, per_rank[r], "src_weights") for r in ranks]
        destinations: list[dict[int, float | None]]
        if dst_weights is None:
            chosen = self.topology if topology is None else self._checked_topology(topology)
            destinations = [dict.fromkeys(chosen.out_neighbors(r)) for r in ranks]
        else:
            per_rank = one_per_rank(dst_weights, self.size, "dst_weights")
            destinations = [self._checked_destinations(r, per_rank[r]) for r in ranks]
        return given_plan(self.size, own, sources, destinations)

    def _rows_checked(self, buffers: Sequence[Buffer], rows: int, meaning: str) -> None:
        for buffer in buffers:
            if buffer.shape[0] != rows:
                raise ContractError(
                    f"an array with leading axis {buffer.shape[0]} was given, but backend "
                    f"'stacked' has {rows} {meaning}: axis 0 must have one row for each"
                )

    def _start_neighbor_allreduce(
        self, buffers: tuple[Buffer, ...], layout: Layout, plan: Any
    ) -> Request[Any]:
        mixed, times = self._averaged(buffers, layout, plan)
        return self._request(mixed, layout, times)

    def _neighbor_allreduce(self, buffers: tuple[Buffer, ...], layout: Layout, plan: Any) -> Any:
        mixed, times = self._averaged(buffers, layout, plan)
        self._clocks.reach(times)
        return unpack(mixed, layout, self._lead_shape)

    def _averaged(
        self, buffers: tuple[Buffer, ...], layout: Layout, plan: Any
    ) -> tuple[list[Buffer], Any]:
        self._rows_checked(buffers, self.size, "ranks")
        times = self._clocks.exchange(plan.edges, row_bytes(buffers))
        mixed: list[Buffer] = []
        for index, buffer in enumerate(buffers):
            if isinstance(buffer, Phantom):
                mixed.append(buffer)
            else:
                mixed.append(plan.average(buffer, layout.dtypes[index]))
        return mixed, times

    def _start_neighbor_allgather(
        self, buffers: tuple[Buffer, ...], layout: Layout, plan: Any
    ) -> Request[Any]:
        self._rows_checked(buffers, self.size, "ranks")
        times = self._clocks.exchange(plan.edges, row_bytes(buffers))
        rows = [take(buffer, plan.edges.sources) for buffer in buffers]
        return self._request(rows, layout, times, len(plan.edges))

    def _start_neighbor_alltoall(
        self, buffers: tuple[Buffer, ...], layout: Layout, plan: Any
    ) -> Request[Any]:
        self._rows_checked(buffers, len(plan.edges), "edges")
        times = self._clocks.exchange(plan.edges, row_bytes(buffers))
        order = np.argsort(plan.edges.by_source)
        rows = [take(buffer, order) for buffer in buffers]
        return self._request(rows, layout, times, len(plan.edges))

    def _mixed(
        self,
        buffers: tuple[Buffer, ...],
        layout: Layout,
        plan: Any,
        mine: tuple[Buffer, ...] | None,
    ) -> list[Buffer]:
        self._rows_checked(buffers, len(plan.edges), "edges")
        mixed: list[Buffer] = []
        for index, (buffer, dtype) in enumerate(zip(buffers, layout.dtypes, strict=True)):
            if isinstance(buffer, Phantom):
                mixed.append(Phantom((self.size, *buffer.shape[1:]), buffer.itemsize))
            else:
                mixed.append(plan.mix(buffer, None if mine is None else mine[index], dtype))
        return mixed

    def _start_pair_gossip(
        self,
        buffers: tuple[Buffer, ...],
        layout: Layout,
        peer: Any,
        weights: tuple[float, float],
        missing: str | None = None,
    ) -> Request[Any]:
        del missing  # here, no message is lost
        plan = self._pair_plan(peer, *weights)
        mixed, times = self._averaged(buffers, layout, plan)
        alone = np.flatnonzero(np.diff(plan.matrix.indptr) == 1)
        for result, buffer in zip(mixed, buffers, strict=True):
            if isinstance(result, np.ndarray) and isinstance(buffer, np.ndarray):
                result[alone] = buffer[alone]
        return self._request(mixed, layout, times)

    def _pair_plan(self, peer: Any, self_weight: float, peer_weight: float) -> Any:
        mine = checked_weight(self_weight, "self_weight")
        theirs = checked_weight(peer_weight, "peer_weight")
        ranks = np.arange(self.size)
        peers = self._partners(peer)
        alone = peers == ranks
        first = np.minimum(ranks, peers)
        own_first = (ranks <= peers)[:, None]
        pairs = np.where(own_first, [[mine, theirs]], [[theirs, mine]])
        pairs[alone, 0] = 1.0
        keep = np.stack([np.ones(self.size, bool), ~alone], axis=1)
        columns = np.stack([first, np.maximum(ranks, peers)], axis=1)[keep]
        starts = np.r_[0, np.cumsum(keep.sum(axis=1))]
        return StackedPlan(sp.csr_array((pairs[keep], columns, starts), (self.size, self.size)))

    def _partners(self, peer: Any) -> Any:
        """Return the checked partner of each rank; a rank without one is its own."""
        ranks = np.arange(self.size)
        given = [-1 if p is None else p for p in one_per_rank(peer, self.size, "peer")]
        peers = np.where(np.asarray(given) == -1, ranks, np.asarray(given))
        for rank in ranks:
            self._check_peer(peers[rank], "peer")
        bad = np.flatnonzero(peers[peers] != ranks)
        if len(bad):
            one = bad[0]
            raise ContractError(
                f"rank {one} names peer {peers[one]}, but rank {peers[one]} names "
                f"{peers[peers[one]]}; partners must name each other"
            )
        return peers

    def _request(
        self, buffers: Sequence[Buffer], layout: Layout, times: Any, rows: int | None = None
    ) -> Request[Any]:
        lead = (self.size if rows is None else rows,)
        return Request(self, [Done(buffers, times)], lambda r: unpack(r[0], layout, lead))
