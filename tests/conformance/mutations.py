"""Mistakes that a backend could make, one for each check of the suite, planted in ours."""

from __future__ import annotations

import builtins
import dataclasses
import importlib
from typing import Any

import numpy as np

from dectool.communicator import (
    Request,
    _arrays,
    _collectives,
    _compressed,
    _core,
    _groups,
    _layout,
    _neighborhood,
    _one_rank,
    _pair_gossip,
    _parcel,
    _rounds,
    _tree,
)
from dectool.communicator._collectives import CollectiveOperations
from dectool.communicator._core import CommunicatorCore
from dectool.communicator._groups import GroupOperations
from dectool.communicator._hierarchical import HierarchicalOperations
from dectool.communicator._neighborhood import NeighborhoodOperations
from dectool.communicator._pair_gossip import PairOperations
from dectool.communicator._plans import NeighborPlans
from dectool.sim import AlphaBeta
from dectool.sim._communicator import SimCommunicator
from dectool.sim._engine import Engine
from tests.conformance.arithmetic_mutations import ARITHMETIC, backwards, from_the_first_term
from tests.conformance.compressed_mutations import COMPRESSED_MUTATIONS
from tests.conformance.fused_mutations import FUSED_MUTATIONS
from tests.conformance.planting import Mutation, Patch, instead, last_first, replace
from tests.conformance.window_mutations import WINDOW_MUTATIONS

run_module = importlib.import_module("dectool.run")


def deaf_to_topology(original: Any) -> Any:
    return lambda self, topology, *weights: original(self, None, *weights)


def newest_first(patch: Patch) -> None:
    """Hold messages back until the rank receives, then send the last one first."""
    held: dict[int, list[Any]] = {}
    isend, irecv = CommunicatorCore.isend, CommunicatorCore.irecv

    def mutant_isend(self: Any, x: Any, dest: int, tag: int = 0) -> Any:
        held.setdefault(self.rank, []).append((x, dest, tag))
        return Request(self, (), lambda parcels: None)

    def mutant_irecv(self: Any, source: int, tag: int = 0) -> Any:
        for message in reversed(held.pop(self.rank, [])):
            isend(self, *message)
        return irecv(self, source, tag)

    patch.setattr(CommunicatorCore, "isend", mutant_isend)
    patch.setattr(CommunicatorCore, "irecv", mutant_irecv)


class Oldest:
    """A request that gives the result of the oldest one that nobody has waited for."""

    def __init__(self, queue: list[Any]) -> None:
        self.queue = queue

    def wait(self) -> Any:
        return self.queue.pop(0).wait()


def in_the_order_of_waiting(original: Any) -> Any:
    queues: dict[int, list[Any]] = {}

    def mutant(self: Any, *args: Any, **named: Any) -> Any:
        queue = queues.setdefault(self.rank, [])
        queue.append(original(self, *args, **named))
        return Oldest(queue)

    return mutant


def no_last_round(original: Any) -> Any:
    def mutant(rank: Any, size: int, cuts: Any) -> Any:
        return list(original(rank, size, cuts))[:-1]

    return mutant


def shortened(algorithm: str) -> Mutation:
    """Lose the messages of the last round of an all-reduce algorithm."""
    rounds = no_last_round(_rounds.ALLREDUCE[algorithm])
    return lambda patch: patch.setitem(_rounds.ALLREDUCE, algorithm, rounds)


def without_tag(channel: Any) -> Any:
    return (*channel[:-1], 0) if len(channel) > 1 and channel[-2] == "message" else channel


def blocking_send(original: Any) -> Any:
    def mutant(self: Any, x: Any, dest: int, tag: int = 0) -> Any:
        request = original(self, x, dest, tag)
        self.recv(dest, tag="acknowledged")
        return request

    return mutant


def copied(original: Any) -> Any:
    return lambda self: np.array(original(self)) if original(self) is not None else None


def in_memory_order(original: Any) -> Any:
    def mutant(x: Any, library: str, lead: int) -> Any:
        return original(np.ravel(x, "K").reshape(x.shape), library, lead)

    return mutant


def tuples(original: Any) -> Any:
    def mutant(structure: Any, pieces: Any) -> Any:
        value = original(structure, pieces)
        return tuple(value) if isinstance(value, tuple) else value

    return mutant


def lax(*names: str) -> Mutation:
    """Take the checks of arguments out."""

    def plant(patch: Patch) -> None:
        for owner in (
            CommunicatorCore,
            NeighborhoodOperations,
            PairOperations,
            CollectiveOperations,
        ):
            for name in names:
                if name in vars(owner):
                    patch.setattr(owner, name, lambda self, value=None, *rest, **named: value)

    return plant


def vague(original: Any) -> Any:
    return lambda *args: ""


def scaled_by_nothing(original: Any) -> Any:
    return lambda parcel, factor, layout: parcel


def first_row(original: Any) -> Any:
    return lambda buffer, index: original(buffer, 0)


def swap_weights(original: Any) -> Any:
    return lambda self, buffers, layout, peer, w: original(self, buffers, layout, peer, w[::-1])


def without_weights(original: Any) -> Any:
    def tolerating(self: Any, plan: Any, missing: Any) -> Any:
        plan = original(self, plan, missing)
        return dataclasses.replace(plan, weights=tuple(0.0 for _ in plan.weights))

    return tolerating


def without_own(original: Any) -> Any:
    return lambda self, buffers, layout, plan, mine: original(self, buffers, layout, plan, None)


def reversed_parts(original: Any) -> Any:
    return lambda self, parts, weights, layout: original(self, parts[::-1], weights, layout)


def minimum_for_maximum(original: Any) -> Any:
    return lambda op, left, right, dtype: original("min" if op == "max" else op, left, right, dtype)


def always_own_first(original: Any) -> Any:
    return lambda data, step, got, dtype, op, first: original(data, step, got, dtype, op, False)


def reversed_parcels(original: Any) -> Any:
    return lambda self, *args: original(self, *args)[::-1]


def from_rank_zero(original: Any) -> Any:
    return lambda self, buffers, layout, root: original(self, buffers, layout, 0)


def there_and_back(original: Any) -> Any:
    return lambda self, x, dest, source, tag=0: original(self, x, source, dest, tag)


def wrapped_round(original: Any) -> Any:
    return lambda self, x, dest, source, tag=0: original(
        self, x, dest % self.size, source % self.size, tag
    )


def untagged(original: Any) -> Any:
    return lambda self, *args: original(self, *args[:-1], without_tag(args[-1]))


def tagless(patch: Patch) -> None:
    for name in ("_post", "_expect"):
        replace(SimCommunicator, name, untagged)(patch)


def flattened(original: Any) -> Any:
    return lambda parcel: parcel.buffers[0]


def sources_mixed_up(original: Any) -> Any:
    def mutant(self: Any, sends: Any, sources: Any, tag: int = 0) -> Any:
        received = original(self, sends, sources, tag)
        return dict(zip(received, reversed(list(received.values())), strict=True))

    return mutant


def one_context(original: Any) -> Any:
    return lambda self, members, context: original(self, members, ("group",))


def without_key(original: Any) -> Any:
    return lambda self, color, key=0: original(self, color, 0)


def half_the_time(original: Any) -> Any:
    return lambda self, strand, seconds, kind: original(self, strand, seconds / 2, kind)


def at_once(original: Any) -> Any:
    return lambda self, *args: (original(self, *args)[0], 0.0)


def same_for_all(original: Any) -> Any:
    return lambda seed, rank, purpose: original(seed, 0, purpose)


def uncopied(*owners: Any) -> Mutation:
    def plant(patch: Patch) -> None:
        for owner in owners:
            patch.setattr(owner, "own", lambda buffers: buffers)

    return plant


def as_float(original: Any) -> Any:
    def mutant(buffer: Any, leaf: Any, lead_shape: Any = ()) -> Any:
        return original(buffer, leaf._replace(dtype="float32"), lead_shape)

    return mutant


def in_order_given(patch: Patch) -> None:
    patch.setattr(
        _tree,
        "sorted",
        lambda items, key=None: list(items) if key is repr else builtins.sorted(items, key=key),
        raising=False,
    )


MUTATIONS: dict[str, list[Mutation]] = {
    "neighbor_allreduce_is_a_row_of_the_product": [*ARITHMETIC.values()],
    "neighbor_allreduce_takes_the_topology_it_is_told": [
        replace(NeighborhoodOperations, "_plan", deaf_to_topology)
    ],
    "per_call_weights_replace_the_topology": [
        replace(_neighborhood, "_scaled", scaled_by_nothing),
        replace(_parcel, "weighted_sum", backwards),
    ],
    "neighbor_allgather_returns_the_rows_of_the_in_neighbors": [
        replace(_neighborhood, "stack", last_first)
    ],
    "neighbor_alltoall_sends_each_neighbor_its_own_row": [replace(_neighborhood, "row", first_row)],
    "mix_reduces_edge_arrays_with_the_weights": [
        replace(NeighborhoodOperations, "_mix", without_own),
        replace(_parcel, "weighted_sum", backwards),
    ],
    "pair_gossip_averages_two_ranks": [
        replace(PairOperations, "_start_pair_gossip", swap_weights),
        replace(_parcel, "weighted_sum", from_the_first_term),
    ],
    "hierarchical_neighbor_allreduce_averages_nodes": [
        replace(HierarchicalOperations, "_reduce_parts", reversed_parts)
    ],
    "policies_change_nothing_where_nothing_is_lost": [
        replace(NeighborPlans, "_tolerating", without_weights),
        instead(_core, "checked_policy", lambda policy: policy),
        instead(CommunicatorCore, "restarts", 1),
        instead(CommunicatorCore, "_enter", lambda self, step: step + 1),
    ],
    "non_blocking_forms_return_what_the_blocking_ones_do": [
        replace(Request, "wait", copied),
        instead(Request, "test", lambda self: False),
    ],
    "requests_may_be_waited_for_in_any_order": [
        replace(NeighborhoodOperations, "ineighbor_allreduce", in_the_order_of_waiting)
    ],
    "a_program_may_poll_until_a_request_is_complete": [
        instead(Request, "test", lambda self: False)
    ],
    "allreduce_reduces_over_all_ranks": [
        replace(_collectives, "combine", minimum_for_maximum),
        instead(_collectives, "divide", lambda buffer, count, dtype: buffer),
        *(shortened(name) for name in _rounds.ALLREDUCE),
    ],
    "allreduce_gives_every_rank_the_same_bits": [replace(_collectives, "_place", always_own_first)],
    "bools_are_reduced_by_max_and_min": [replace(_collectives, "combine", minimum_for_maximum)],
    "reduce_scatter_reduces_row_i_into_rank_i": [
        replace(CollectiveOperations, "_alltoall_parcels", reversed_parcels)
    ],
    "allgather_and_alltoall_move_rows": [replace(_collectives, "stack", last_first)],
    "broadcast_hands_out_what_the_root_holds": [
        replace(CollectiveOperations, "_broadcast", from_rank_zero)
    ],
    "barrier_lets_nobody_pass_before_all_have_come": [
        instead(CollectiveOperations, "barrier", lambda self: None),
        replace(AlphaBeta, "transfer", at_once),
    ],
    "sendrecv_follows_a_permutation": [replace(CommunicatorCore, "isendrecv", there_and_back)],
    "sendrecv_needs_no_partner": [replace(CommunicatorCore, "isendrecv", wrapped_round)],
    "messages_are_matched_by_source_and_tag": [tagless],
    "messages_of_one_tag_keep_their_order": [newest_first],
    "messages_may_hold_anything_of_any_shape": [replace(_core, "_content", flattened)],
    "exchange_sends_to_many_and_receives_from_many": [
        replace(CommunicatorCore, "exchange", sources_mixed_up)
    ],
    "sending_does_not_wait_for_the_receiver": [replace(CommunicatorCore, "isend", blocking_send)],
    "ranks_know_their_place": [
        instead(CommunicatorCore, "node_rank", property(lambda self: self.rank % self.local_size))
    ],
    "split_makes_groups_by_color_and_key": [replace(GroupOperations, "split", without_key)],
    "groups_do_not_meet_each_others_messages": [replace(SimCommunicator, "_subgroup", one_context)],
    "node_and_peers_are_rows_and_columns": [
        instead(GroupOperations, "node", GroupOperations.peers_across_nodes)
    ],
    "clocks_go_forward_by_what_elapses": [replace(Engine, "elapse", half_the_time)],
    "a_value_is_not_received_before_it_is_sent": [replace(AlphaBeta, "transfer", at_once)],
    "chance_follows_from_seed_rank_and_purpose": [replace(_one_rank, "generator", same_for_all)],
    "per_rank_makes_values_that_differ": [
        instead(CommunicatorCore, "per_rank", lambda self, function: function(0))
    ],
    "containers_come_out_as_they_went_in": [replace(_tree, "unflatten", tuples)],
    "ranks_may_fill_a_dict_in_any_order": [in_order_given],
    "any_shape_and_memory_order_will_do": [replace(_arrays, "_open_numpy", in_memory_order)],
    "inputs_are_neither_changed_nor_kept": [
        uncopied(_core),
        uncopied(_collectives),
        uncopied(_neighborhood),
    ],
    "meta_tensors_carry_shape_and_dtype": [replace(_parcel, "close_array", as_float)],
    "libraries_may_differ_between_ranks": [instead(_layout, "is_meta", lambda leaf: leaf.origin)],
    "averages_of_integers_and_bools_are_refused": [
        instead(_parcel.Layout, "require_averageable", lambda self, operation: None)
    ],
    "what_is_no_array_is_refused": [instead(_arrays, "_NUMPY_KINDS", frozenset("fciubUV"))],
    "unknown_names_offer_the_nearest": [replace(_collectives, "nearest", vague)],
    "reductions_without_a_meaning_are_refused": [
        instead(_collectives, "_check_operator", lambda op, layout: None)
    ],
    "ranks_out_of_range_are_named": [lax("_check_peer")],
    "wrong_weights_are_named": [instead(_pair_gossip, "checked_weight", lambda value, name: value)],
    "sends_that_nobody_expects_are_an_error": [
        instead(run_module, "_check_received", lambda unreceived: None)
    ],
    "wrong_topologies_are_refused": [lax("_checked_topology")],
    "wrong_numbers_of_rows_are_refused": [
        instead(NeighborhoodOperations, "_check_edges", lambda self, *args: None),
        instead(_neighborhood, "same_layout", lambda mine, other, who: None),
    ],
    "wrong_times_and_purposes_are_refused": [lax("_checked_seconds")],
    "wrong_messages_are_refused": [lax("_check_peer")],
    "wrong_exchanges_are_refused": [lax("_check_peer")],
    "wrong_splits_are_refused": [
        instead(_groups, "_check_whole", lambda name, value, wanted: None)
    ],
    "ranks_that_disagree_are_told_so": [
        instead(_compressed, "same_layout", lambda mine, other, who: None),
        instead(_collectives, "same_layout", lambda mine, other, who: None),
    ],
    **COMPRESSED_MUTATIONS,
    **FUSED_MUTATIONS,
    **WINDOW_MUTATIONS,
}
"""Mistakes that each check must find when it runs on the simulator."""
