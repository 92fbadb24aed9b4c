"""Averages of two ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dectool.communicator._buckets import Buckets
from dectool.communicator._coded import is_payload
from dectool.communicator._core import Channel
from dectool.communicator._missing import checked_policy
from dectool.communicator._neighborhood import NeighborhoodOperations
from dectool.communicator._parcel import Buffer, Layout, Parcel, unpack
from dectool.communicator._plans import NeighborPlan, checked_weight
from dectool.communicator._request import Request


class PairOperations(NeighborhoodOperations):
    """Pairwise gossip: an average with one neighbour, of two terms."""

    def ipair_gossip(
        self,
        x: Any,
        peer: Any,
        self_weight: float = 0.5,
        peer_weight: float = 0.5,
        *,
        compressor: Any = None,
        missing: str | None = None,
    ) -> Request[Any]:
        """Start a :meth:`pair_gossip`."""
        if type(x) is Buckets:
            return x.start(
                self.ipair_gossip,
                peer,
                self_weight,
                peer_weight,
                compressor=compressor,
                missing=missing,
            )
        if compressor is not None or is_payload(x):
            plan = self._pair_plan(peer, self_weight, peer_weight)
            return self._start_coded_allreduce(x, compressor, plan, "pair_gossip")
        buffers, layout = self._pack(x)
        layout.require_averageable("pair_gossip")
        weights = (self_weight, peer_weight)
        if missing is None:
            return self._start_pair_gossip(buffers, layout, peer, weights)
        return self._start_pair_gossip(buffers, layout, peer, weights, checked_policy(missing))

    def pair_gossip(
        self,
        x: Any,
        peer: Any,
        self_weight: float = 0.5,
        peer_weight: float = 0.5,
        *,
        compressor: Any = None,
        missing: str | None = None,
    ) -> Any:
        r"""Return the weighted average of this rank's and one peer's values.

        Both ranks call it and name each other. A rank without a partner names itself, ``None``
        or -1, and gets a copy of ``x``. Only the two ranks take part.

        Args:
            x: An array of floats or complex numbers, or a container of them.
            peer: The partner's rank (stacked: an integer array with one entry per rank).
            self_weight: Weight of ``x``.
            peer_weight: Weight of the peer's value.
            compressor: For what is sent, as in :meth:`neighbor_allreduce`.
            missing: What to do where the peer's value was lost: "error", or "self" or
                "renormalize" to get ``x`` back unchanged; default ``comm.missing``. The peer
                does not know: the sum of the two is kept only if both messages are lost.

        Returns:
            A new array or container like ``x``.

        Raises:
            ArgumentError: ``peer`` is no rank, or a weight is not finite.
            ArgumentTypeError: ``x`` holds integers or bools.
            ContractError: The peer holds other shapes or dtypes.
            MessageLostError: The peer's value was lost, and ``missing`` is "error".
        """
        return self.ipair_gossip(
            x, peer, self_weight, peer_weight, compressor=compressor, missing=missing
        ).wait()

    def _pair_plan(self, peer: Any, self_weight: float, peer_weight: float) -> Any:
        """Return the plan of an average with one peer, or with nobody."""
        mine = checked_weight(self_weight, "self_weight")
        theirs = checked_weight(peer_weight, "peer_weight")
        if peer is None or peer == -1 or peer == self.rank:
            return NeighborPlan((), (), (1.0,), 0)
        other = self._check_peer(peer, "peer")
        pair = (mine, theirs) if self.rank < other else (theirs, mine)
        place = 0 if self.rank < other else 1
        return NeighborPlan((other,), (other,), pair, place, pair=True)

    def _pair_channel(self, peer: int) -> Channel:
        """Return what the next messages of two ranks are matched by."""
        del peer
        return (*self._context, "pair_gossip")

    def _start_pair_gossip(
        self,
        buffers: tuple[Buffer, ...],
        layout: Layout,
        peer: Any,
        weights: tuple[float, float],
        missing: str | None = None,
    ) -> Request[Any]:
        plan = self._pair_plan(peer, *weights)
        if missing is not None:
            plan = self._tolerating(plan, missing)
        parcel = self._owned(buffers, layout)
        if not plan.sources:
            return Request(self, (), lambda parcels: unpack(parcel.buffers, layout))
        channel = self._pair_channel(plan.destinations[0])
        self._post(parcel, plan.destinations[0], channel)

        def finish(parcels: Sequence[Parcel]) -> Any:
            return unpack(self._reduce(parcel, parcels, plan), layout)

        return Request(self, [self._expect(plan.sources[0], channel)], finish)
