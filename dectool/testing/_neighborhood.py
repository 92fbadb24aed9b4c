"""Checks of the operations between neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool import topology
from dectool.testing import _oracle as oracle
from dectool.testing._check import SIZES, check
from dectool.testing._compare import assert_same_bits, to_numpy
from dectool.testing._kinds import Kind, averageable, numpy_kind, values, whole
from dectool.testing._portable import cut, random_topology, rows
from dectool.testing._runner import Runner, apply
from dectool.topology import Topology

FLOAT64 = numpy_kind("float64")


def like(kind: Kind, x: Any) -> Any:
    """Return an oracle's array as the kind that the operation must return."""
    if not kind.name.startswith("torch"):
        return x
    import torch

    name = kind.name.removeprefix("torch ")
    if name == "bfloat16":
        return torch.from_numpy(np.array(x).view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(np.array(x))


@check()
def neighbor_allreduce_is_a_row_of_the_product(runner: Runner) -> None:
    """x_i⁺ = Σ_j W_ij x_j to the last bit, on directed graphs, for every kind of float."""
    for n in SIZES:
        for number, kind in enumerate(averageable()):
            for loops in (True, False):
                graph = random_topology(n, number, loops=loops)
                W = graph.to_dense()
                xs = values(kind, n, (3, 2), number, special=n > 2)
                got = apply(runner, "neighbor_allreduce", xs, topology=graph)
                for rank in range(n):
                    expected = like(kind, oracle.neighbor_average(W, xs, rank))
                    where = f"neighbor_allreduce of {kind.name} on rank {rank} of {n}"
                    assert_same_bits(got[rank], expected, where)


@check()
def neighbor_allreduce_takes_the_topology_it_is_told(runner: Runner) -> None:
    """That of the call before that of the communicator, which may be set, before step 0."""
    schedule = topology.periodic([random_topology(5, 1), random_topology(5, 2)])
    other = random_topology(5, 3)
    xs = values(FLOAT64, 5, (4,), 0)

    def program(comm: Any) -> Any:
        x = comm.per_rank(xs.__getitem__)
        assert np.array_equal(comm.topology.to_dense(), schedule.at(0).to_dense())
        first = comm.neighbor_allreduce(x)
        called = comm.neighbor_allreduce(x, other)
        comm.topology = comm.schedule.at(3)
        return {"first": first, "called": called, "set": comm.neighbor_allreduce(x)}

    got = runner(program, 5, topology=schedule)
    graphs = {"first": schedule.at(0), "called": other, "set": schedule.at(1)}
    for rank in range(5):
        expected = {
            name: oracle.neighbor_average(graph.to_dense(), xs, rank)
            for name, graph in graphs.items()
        }
        assert_same_bits(got[rank], expected, f"topologies on rank {rank}")


@check()
def per_call_weights_replace_the_topology(runner: Runner) -> None:
    """self_weight and src_weights say what is summed; dst_weights who gets it, and the factor."""
    for n in SIZES[1:]:
        for kind in averageable():
            graph = random_topology(n, 7)
            W = graph.to_dense()
            factor = np.random.default_rng(n).normal(size=(n, n))
            xs = values(kind, n, (3,), n, special=n > 3)

            def program(comm: Any, n: int = n, W: Any = W, f: Any = factor, xs: Any = xs) -> Any:
                x = comm.per_rank(xs.__getitem__)
                own = comm.per_rank(lambda i: float(W[i, i]))
                sources = comm.per_rank(
                    lambda i: {j: float(W[i, j]) for j in reversed(oracle.in_neighbors(W, i))}
                )
                listed = comm.per_rank(lambda i: oracle.out_neighbors(W, i)[::-1])
                scales = comm.per_rank(
                    lambda j: {i: float(f[i, j]) for i in oracle.out_neighbors(W, j)}
                )
                average = comm.neighbor_allreduce
                given = {"self_weight": own, "src_weights": sources}
                return {
                    "topology's destinations": average(x, **given),
                    "listed": average(x, **given, dst_weights=listed),
                    "scaled": average(x, **given, dst_weights=scales),
                    "only scaled": average(x, dst_weights=scales),
                }

            got = runner(program, n, topology=graph)
            for rank in range(n):
                plain = like(kind, oracle.neighbor_average(W, xs, rank))
                sent = [
                    x if j == rank else oracle.scaled(float(factor[rank, j]), x)
                    for j, x in enumerate(xs)
                ]
                scaled = like(kind, oracle.neighbor_average(W, sent, rank))
                names = ["topology's destinations", "listed", "scaled", "only scaled"]
                expected = dict(zip(names, [plain, plain, scaled, scaled], strict=True))
                assert_same_bits(got[rank], expected, f"{kind.name}, rank {rank} of {n}")


def _allgathered(comm: Any, x: Any, graph: Topology) -> Any:
    return cut(comm, comm.neighbor_allgather(x, graph), graph)


def _sent_to_all(comm: Any, rank: Any, sent: list[Any], graph: Topology) -> Any:
    del rank
    return cut(comm, comm.neighbor_alltoall(rows(comm, sent), graph), graph)


@check()
def neighbor_allgather_returns_the_rows_of_the_in_neighbors(runner: Runner) -> None:
    """In ascending order, the rank itself left out; mix reduces them to neighbor_allreduce."""
    for n in SIZES:
        for kind in averageable() + whole():
            graph = random_topology(n, 11, loops=False)
            xs = values(kind, n, (2, 2), 5)
            got = apply(runner, _allgathered, xs, graph)
            for rank in range(n):
                sources = oracle.in_neighbors(graph.to_dense(), rank)
                where = f"neighbor_allgather of {kind.name} on rank {rank} of {n}"
                assert len(got[rank]["rows"]) == len(sources), where
                for edge, source in zip(got[rank]["rows"], sources, strict=True):
                    assert_same_bits(edge, xs[source], where)


@check()
def neighbor_alltoall_sends_each_neighbor_its_own_row(runner: Runner) -> None:
    """Row k of what a rank gives goes to its k-th out-neighbour."""
    for n in SIZES:
        for kind in [*averageable(), *whole()]:
            graph = random_topology(n, 13)
            W = graph.to_dense()
            sent = [
                values(kind, 1, (len(oracle.out_neighbors(W, j)), 3), 100 + j)[0] for j in range(n)
            ]
            got = apply(runner, _sent_to_all, range(n), sent, graph)
            for rank in range(n):
                sources = oracle.in_neighbors(W, rank)
                where = f"neighbor_alltoall of {kind.name} on rank {rank} of {n}"
                assert len(got[rank]["rows"]) == len(sources), where
                for edge, source in zip(got[rank]["rows"], sources, strict=True):
                    mine = sent[source][oracle.out_neighbors(W, source).index(rank)]
                    assert_same_bits(edge, mine, where)


@check()
def mix_reduces_edge_arrays_with_the_weights(runner: Runner) -> None:
    """With ``own`` it has the bits of neighbor_allreduce; without, the own share is left out."""
    for n in SIZES:
        for kind in averageable():
            graph = random_topology(n, 17, loops=n % 2 == 0)
            W = graph.to_dense()
            xs = values(kind, n, (3,), 3, special=n > 2)

            def program(comm: Any, xs: Any = xs, graph: Any = graph) -> Any:
                x = comm.per_rank(xs.__getitem__)
                edges = comm.neighbor_allgather(x, graph)
                return {"own": comm.mix(edges, graph, own=x), "alone": comm.mix(edges, graph)}

            got = runner(program, n)
            for rank in range(n):
                sources = oracle.in_neighbors(W, rank)
                alone = (
                    oracle.weighted_sum(
                        [float(W[rank, j]) for j in sources], [xs[j] for j in sources]
                    )
                    if sources
                    else np.zeros_like(to_numpy(xs[0]))
                )
                expected = {
                    "own": like(kind, oracle.neighbor_average(W, xs, rank)),
                    "alone": like(kind, alone),
                }
                assert_same_bits(got[rank], expected, f"mix of {kind.name}, rank {rank} of {n}")


def _partner(rank: int, n: int) -> int:
    """Return a partner: 0 with 1, 4 with 5, and so on; itself where there is none."""
    return rank if rank in (2, 3) or rank ^ 1 >= n else rank ^ 1


@check()
def pair_gossip_averages_two_ranks(runner: Runner) -> None:
    """Summed in ascending rank; a rank without a partner (itself, None or -1) keeps its bits."""
    for n in SIZES:
        for kind in averageable():
            partners = [_partner(rank, n) for rank in range(n)]
            named = [
                {2: -1, 3: None}.get(rank, peer) if peer == rank else peer
                for rank, peer in enumerate(partners)
            ]
            xs = values(kind, n, (40,), 19, special=True)

            def program(comm: Any, xs: Any = xs, named: Any = named) -> Any:
                x, peer = comm.per_rank(xs.__getitem__), comm.per_rank(named.__getitem__)
                return {
                    "even": comm.pair_gossip(x, peer),
                    "uneven": comm.pair_gossip(x, peer, self_weight=0.3, peer_weight=0.9),
                }

            got = runner(program, n)
            for rank, peer in enumerate(partners):
                where = f"pair_gossip of {kind.name} on rank {rank} of {n}"
                for name, mine, theirs in (("even", 0.5, 0.5), ("uneven", 0.3, 0.9)):
                    weights = {rank: mine, peer: theirs}
                    pair = sorted(weights)
                    expected = xs[rank]
                    if peer != rank:
                        total = oracle.weighted_sum(
                            [weights[p] for p in pair], [xs[p] for p in pair]
                        )
                        expected = like(kind, total)
                    assert_same_bits(got[rank][name], expected, where)


@check()
def hierarchical_neighbor_allreduce_averages_nodes(runner: Runner) -> None:
    """The mean within each node, in rank order with weights 1/g, then W between the nodes."""
    for nodes, group in ((1, 1), (1, 3), (3, 1), (2, 2), (3, 2), (2, 4)):
        n = nodes * group
        graph = random_topology(nodes, 23)
        for kind in averageable():
            xs = values(kind, n, (5,), 29)
            got = apply(
                runner,
                "hierarchical_neighbor_allreduce",
                xs,
                graph,
                ranks_per_node=group,
            )
            means = [
                oracle.weighted_sum([1.0 / group] * group, xs[first : first + group])
                for first in range(0, n, group)
            ]
            for rank in range(n):
                mixed = oracle.neighbor_average(graph.to_dense(), means, rank // group)
                where = f"hierarchical of {kind.name} on rank {rank} of {nodes} x {group}"
                assert_same_bits(got[rank], like(kind, mixed), where)
