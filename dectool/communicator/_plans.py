"""What a rank sends, receives and weighs in a neighbour operation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dectool.communicator._core import CommunicatorCore
from dectool.communicator._missing import checked_policy
from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.topology import Topology


@dataclass(slots=True)
class NeighborPlan:
    """What one rank sends, receives and weighs in a neighbour operation.

    Attributes:
        destinations: Ranks to send to, ascending.
        sources: Ranks to receive from, ascending.
        weights: Weights of what is summed: of the sources, with this rank in its place.
        place: Position of this rank's own value in the sum, or ``None`` when it has no weight.
        factors: By what the value for each destination is scaled (or ``None``); empty where
            none is.
        route: Room for what a backend works out once for all calls with this plan.
        missing: What is done about lost messages in place of ``comm.missing``: a policy, or for
            an edge array the buffers to take rows from; ``None`` for ``comm.missing``.
        pair: Whether this is an average of two ranks alone.
    """

    destinations: tuple[int, ...]
    sources: tuple[int, ...]
    weights: tuple[float, ...]
    place: int | None
    factors: tuple[float | None, ...] = ()
    route: Any = None
    missing: Any = None
    pair: bool = False


class NeighborPlans(CommunicatorCore):
    """The part of a communicator that turns topologies and given weights into plans."""

    _plans: dict[int, tuple[Topology, NeighborPlan]]

    def _plan(
        self, topology: Any, self_weight: Any, src_weights: Any, dst_weights: Any
    ) -> NeighborPlan:
        if self_weight is None and src_weights is None and dst_weights is None:
            chosen: Any = self._topology if topology is None else topology
            cached = self._plans.get(id(chosen))
            if cached is not None and cached[0] is chosen:
                return cached[1]
            chosen = self.topology if topology is None else self._checked_topology(topology)
            plan = plan_of(chosen, self.rank)
            if len(self._plans) > 256:
                self._plans.clear()
            self._plans[id(chosen)] = (chosen, plan)
            return plan
        return self._given_plan(topology, self_weight, src_weights, dst_weights)

    def _tolerating(self, plan: Any, missing: Any) -> Any:
        """Return the plan with what is done about lost messages.

        A backend that loses any overrides it; elsewhere plans stay as they are.

        Args:
            plan: What is sent and received.
            missing: A policy, or buffers to take rows from.
        """
        if isinstance(missing, str):
            checked_policy(missing)
        return plan

    def _given_plan(
        self, topology: Any, self_weight: Any, src_weights: Any, dst_weights: Any
    ) -> NeighborPlan:
        if (self_weight is None) != (src_weights is None):
            raise ArgumentError(
                f"self_weight={self_weight} and src_weights={src_weights}: "
                "give both or neither, since they share one sum"
            )
        if self_weight is None:
            chosen = self.topology if topology is None else self._checked_topology(topology)
            base = plan_of(chosen, self.rank)
        else:
            weights = self._checked_weights(self.rank, src_weights, "src_weights")
            sources = tuple(sorted(weights))
            place = sum(source < self.rank for source in sources)
            values = [weights[source] for source in sources]
            values.insert(place, checked_weight(self_weight, "self_weight"))
            base = NeighborPlan((), sources, tuple(values), place)
        if dst_weights is None:
            chosen = self.topology if topology is None else self._checked_topology(topology)
            factors: dict[int, float | None] = dict.fromkeys(chosen.out_neighbors(self.rank))
        else:
            factors = self._checked_destinations(self.rank, dst_weights)
        dests = tuple(sorted(factors))
        scales = tuple(factors[dest] for dest in dests)
        plain = all(scale is None for scale in scales)
        return replace(base, destinations=dests, factors=() if plain else scales)

    def _checked_weights(self, owner: int, weights: Any, argument: str) -> dict[int, float]:
        """Return the weights that rank ``owner`` gives to others, with plain keys and values."""
        if not isinstance(weights, Mapping):
            raise ArgumentTypeError(
                f"{argument} is a {type(weights).__name__}; pass a dict of rank: weight"
            )
        checked = {}
        for peer, weight in weights.items():
            rank = self._check_peer(peer, argument)
            if rank == owner:
                raise ArgumentError(
                    f"{argument} of rank {owner} names the rank itself; its share is self_weight"
                )
            checked[rank] = checked_weight(weight, f"{argument}[{rank}]")
        return checked

    def _checked_destinations(self, owner: int, dst_weights: Any) -> dict[int, float | None]:
        """Return the destinations of rank ``owner``, each with its factor if one is given."""
        if isinstance(dst_weights, Mapping):
            return dict(self._checked_weights(owner, dst_weights, "dst_weights"))
        try:
            named = list(dst_weights)
        except TypeError:
            raise ArgumentTypeError(
                f"dst_weights is a {type(dst_weights).__name__}; pass a dict of rank: factor, "
                "or a sequence of ranks"
            ) from None
        for peer in named:
            self._check_peer(peer, "dst_weights")
        plain = self._checked_weights(owner, dict.fromkeys(named, 1.0), "dst_weights")
        if len(plain) < len(named):
            raise ArgumentError(f"dst_weights {named} names a rank twice; name each once")
        return dict.fromkeys(plain)


@lru_cache(maxsize=4096)
def _shared(weights: tuple[float, ...]) -> tuple[float, ...]:
    """Return one object for equal weights: those of thousands of ranks would not fit a cache."""
    return weights


def plan_of(topology: Topology, rank: int) -> NeighborPlan:
    """Return what a rank does with the weights of a topology."""
    sources, weights = topology.row(rank)
    return NeighborPlan(
        destinations=tuple(topology.out_neighbors(rank)),
        sources=tuple(source for source in sources if source != rank),
        weights=_shared(tuple(weights)),
        place=sources.index(rank) if rank in sources else None,
    )


def checked_weight(value: Any, argument: str) -> float:
    """Return a weight as a float, or say which argument is none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{argument} is {value!r}; a weight is a number") from None
    if not math.isfinite(number):
        raise ArgumentError(f"{argument} is {number}; a weight must be finite")
    return number
