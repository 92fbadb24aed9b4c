"""Checks of one-sided windows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from dectool import compression, topology
from dectool.errors import ArgumentError, ArgumentTypeError, ContractError, WindowError
from dectool.testing import _oracle as oracle
from dectool.testing._check import SIZES, check
from dectool.testing._compare import assert_same_bits, to_numpy
from dectool.testing._errors import refused
from dectool.testing._kinds import averageable
from dectool.testing._portable import random_topology
from dectool.testing._runner import Runner, apply


def _values(n: int, seed: int, *shape: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for _ in range(n)]


@check("window")
def puts_are_seen_by_updates(runner: Runner) -> None:
    """After put and fence, update gives row i of W X, in the bits of neighbor_allreduce."""
    for n in SIZES:
        graph = random_topology(n, n)
        W = graph.to_dense()
        for kind in averageable():
            xs = [kind.make(x) for x in _values(n, n, 3, 2)]

            def program(comm: Any, x: Any) -> Any:
                with comm.window(x, name="x") as win:
                    comm.elapse(5e-4 * comm.rank)
                    win.put()
                    win.fence()
                    mixed = win.update()
                    assert_same_bits(win.value, mixed, "the value after an update")
                    return mixed

            got = apply(runner, program, xs, topology=graph)
            for rank in range(n):
                expected = oracle.neighbor_average(W, xs, rank)
                assert type(got[rank]) is type(xs[rank])
                where = f"{kind.name}, rank {rank} of {n}"
                assert_same_bits(to_numpy(got[rank]), expected, where)


@check("window")
def weights_scale_what_is_put_and_kept(runner: Runner) -> None:
    """s_ij = w x_j at the destinations that are named; what is kept is scaled; others wait."""
    graph, n = topology.ring(5), 5
    xs = _values(n, 0, 4)

    def program(comm: Any, x: Any) -> Any:
        right, left = (comm.rank + 1) % n, (comm.rank - 1) % n
        with comm.window(x, name="x", zero_init=True) as win:
            win.put(2 * x, dst_weights={right: 0.3}, self_weight=0.25)
            win.fence()
            slots = win.slot(left), win.slot(right)
            kept = win.value
            win.fence()
            mixed = win.update(self_weight=0.5, src_weights={left: 0.125}, reset=True)
            win.fence()
            win.put(dst_weights=[right])
            win.fence()
            return slots, kept, mixed, win.slot(left)

    for rank, (slots, kept, mixed, last) in enumerate(apply(runner, program, xs, topology=graph)):
        where = f"rank {rank}"
        left = oracle.scaled(0.3, 2 * xs[(rank - 1) % n])
        assert_same_bits(slots[0], left, f"{where}: what the left neighbour put")
        assert_same_bits(slots[1], np.zeros(4), f"{where}: the right neighbour put nothing here")
        own = oracle.scaled(0.25, 2 * xs[rank])
        assert_same_bits(kept, own, f"{where}: what is kept")
        first = (rank - 1) % n < rank
        terms = [(0.125, left), (0.5, own)] if first else [(0.5, own), (0.125, left)]
        expected = oracle.weighted_sum([w for w, _ in terms], [t for _, t in terms])
        assert_same_bits(mixed, expected, f"{where}: the update")
        assert last.any(), f"{where}: a put without x sends the value"


@check("window")
def slots_start_from_ones_own_value(runner: Runner) -> None:
    """Until something comes, an update changes a value by rounding alone; zero_init differs."""
    graph = topology.complete(3)
    xs = _values(3, 1, 2)

    def program(comm: Any, x: Any) -> Any:
        with comm.window(x, name="own") as own, comm.window(x, "zero", zero_init=True) as zero:
            peer = (comm.rank + 1) % 3
            return own.slot(peer), zero.slot(peer), own.update(), zero.update()

    for rank, (own, zero, kept, third) in enumerate(apply(runner, program, xs, topology=graph)):
        assert_same_bits(own, xs[rank], "a slot at first")
        assert_same_bits(zero, np.zeros(2), "a slot with zero_init at first")
        np.testing.assert_allclose(kept, xs[rank], rtol=1e-15)
        np.testing.assert_allclose(third, xs[rank] / 3, rtol=1e-15)


@check("window")
def accumulates_add_up_and_are_collected_once(runner: Runner) -> None:
    """s_ij += w x_j as often as it is called; collect takes all, and leaves nothing."""
    n, rounds = 4, 7
    graph = random_topology(n, 2)
    into = [oracle.in_neighbors(graph.to_dense(), rank) for rank in range(n)]

    def program(comm: Any) -> Any:
        with comm.window(np.zeros(3), name="sum", zero_init=True) as win:
            for k in range(rounds):
                win.accumulate(np.full(3, 10.0**comm.rank * (k + 1)), self_weight=0.0)
            requests = [win.iaccumulate(np.full(3, 10.0**comm.rank)) for _ in range(3)]
            for request in requests:
                request.wait()
            win.set(np.zeros(3))
            win.fence()
            return win.collect(), win.collect()

    for rank, (once, twice) in enumerate(runner(program, n, topology=graph)):
        total = sum(10.0**j * (rounds * (rounds + 1) / 2 + 3) for j in into[rank])
        assert_same_bits(once, np.full(3, total), f"collected on rank {rank}")
        assert_same_bits(twice, once, f"collected again on rank {rank}")


@check("window")
def gets_read_the_neighbours_values(runner: Runner) -> None:
    """s_ij = w x_j, of the value that the neighbour has, which takes no part."""
    graph, n = topology.ring(4), 4
    xs = _values(n, 3, 3)

    def program(comm: Any, x: Any) -> Any:
        right, left = (comm.rank + 1) % n, (comm.rank - 1) % n
        with comm.window(0 * x, name="x") as win:
            win.set(x)
            comm.barrier()
            win.get()
            both = win.slot(left), win.slot(right)
            request = win.iget(src_weights={left: 0.7})
            request.wait()
            return both, win.slot(left), win.version(left), win.version(right)

    for rank, (both, scaled, *versions) in enumerate(apply(runner, program, xs, topology=graph)):
        for got, source in zip(both, ((rank - 1) % n, (rank + 1) % n), strict=True):
            assert_same_bits(got, xs[source], f"rank {rank} reads {source}")
        expected = oracle.scaled(0.7, xs[(rank - 1) % n])
        assert_same_bits(scaled, expected, f"rank {rank} reads and scales")
        assert versions == [2, 1], f"versions after gets: {versions}"


@check("window")
def versions_and_staleness_count(runner: Runner) -> None:
    """A version counts writes; staleness counts the updates that used a value already."""
    graph = topology.ring(3)

    def program(comm: Any) -> Any:
        left = (comm.rank - 1) % 3
        with comm.window(np.zeros(1), name="x") as win:
            seen = [(win.version(left), win.staleness(left))]
            win.fence()
            for puts in (2, 0, 0, 1):
                for _ in range(puts):
                    win.put(np.ones(1))
                win.fence()
                before = win.staleness(left)
                win.update()
                seen.append((win.version(left), before))
                win.fence()
            assert 0.0 <= win.age(left) < float("inf"), win.age(left)
            win.wait(left, 3)
            return seen

    for seen in runner(program, 3, topology=graph):
        assert seen == [(0, 0), (2, 0), (2, 1), (2, 2), (3, 0)], seen


@check("window")
def push_sum_keeps_mass_and_finds_the_average(runner: Runner) -> None:
    """Values and weights are conserved to rounding on a directed graph; their ratio converges."""
    n = 5
    graph = topology.exponential(n)
    xs = [np.array([rank**2, -rank], float) for rank in range(n)]

    def program(comm: Any, x: Any) -> Any:
        out = comm.topology.out_neighbors(comm.rank)
        share = 1.0 / (len(out) + 1 + comm.rank % 2)
        with comm.window(x, name="mass", push_sum=True) as win:
            for _ in range(150):
                win.accumulate(
                    dst_weights=dict.fromkeys(out, share), self_weight=1 - share * len(out)
                )
                win.fence()
                win.collect()
                win.fence()
            win.accumulate()
            win.fence()
            win.collect()
            return win.value, win.weight, win.debiased

    got = apply(runner, program, xs, topology=graph)
    np.testing.assert_allclose(sum(value for value, _, _ in got), sum(xs), rtol=1e-13)
    assert abs(sum(weight for _, weight, _ in got) - n) < 1e-13 * n
    for value, weight, debiased in got:
        assert_same_bits(debiased, (1.0 / weight) * value, "value over weight")
        np.testing.assert_allclose(debiased, sum(xs) / n, rtol=1e-9)
        assert abs(weight - 1.0) > 1e-3, "the weights are what makes it right"


@check("window")
def containers_and_compressed_values_are_written_whole(runner: Runner) -> None:
    """A container is one value; with a compressor the neighbours get what payloads stand for."""
    graph, n = topology.ring(3), 3
    xs = _values(n, 4, 6)
    topk = compression.TopK(2)

    def program(comm: Any, x: Any) -> Any:
        left = (comm.rank - 1) % n
        tree = {"w": x.astype("float32"), "b": [x[:2], x[2:5] * 1j]}
        with comm.window(tree, name="tree") as win, comm.window(x, "top", compressor=topk) as top:
            before = comm.bytes_sent
            win.put()
            after = comm.bytes_sent
            top.put()
            spent = after - before, comm.bytes_sent - after
            win.fence()
            top.fence()
            return win.slot(left), top.slot(left), top.value, spent

    nbytes = topk.wire_bytes(6, "float64")
    for rank, (tree, top, own, spent) in enumerate(apply(runner, program, xs, topology=graph)):
        x = xs[(rank - 1) % n]
        assert_same_bits(tree["w"], x.astype("float32"), "an array of a container")
        assert_same_bits(tree["b"][0], x[:2], "another array")
        assert_same_bits(tree["b"][1], x[2:5] * 1j, "a third")
        assert_same_bits(top, topk.decompress(topk.compress(x, lead=0)), "a compressed put")
        assert_same_bits(own, xs[rank], "one's own value stays exact")
        assert spent == (2 * (24 + 16 + 48), 2 * nbytes), f"bytes of two puts: {spent}"


@check("window")
def keys_agree_that_are_equal(runner: Runner) -> None:
    """On one rank two equal keys are one string, on the others two: the arrays agree."""
    graph, n = topology.ring(3), 3

    def program(comm: Any, x: Any) -> Any:
        again = "layer" if comm.rank == 0 else "".join(["la", "yer"])
        with comm.window({"layer": {again: x}}, name="tree") as win:
            win.put()
            win.fence()
            return win.update()["layer"]["layer"]

    xs = _values(n, 5, 4)
    for rank, got in enumerate(apply(runner, program, xs, topology=graph)):
        expected = oracle.neighbor_average(graph.to_dense(), xs, rank)
        assert_same_bits(got, expected, f"rank {rank}")


@check("window")
def additions_change_the_values_themselves(runner: Runner) -> None:
    """x_i += w d, at once: seen by the owner and by gets without an update; none is lost."""
    graph, n = topology.complete(4), 4

    def program(comm: Any) -> Any:
        me, right = comm.rank, (comm.rank + 1) % n
        x = comm.per_rank(lambda rank: np.full(3, 100.0 * rank))
        with comm.window(x, name="x") as win:
            for k in range(20):
                win.add(np.full(3, float(k)), {me: 1.0, right: -2.0})
            requests = [win.iadd(np.ones(3), range(n)) for _ in range(5)]
            for request in requests:
                request.wait()
            win.fence()
            value = win.value
            win.fence()
            win.get(src_weights=[right])
            win.fence()
            return value, win.slot(right), win.version((me - 1) % n)

    for rank, (value, seen, version) in enumerate(runner(program, n, topology=graph)):
        assert_same_bits(value, np.full(3, 100.0 * rank - 190.0 + 20.0), f"rank {rank}")
        right = 100.0 * ((rank + 1) % n) - 190.0 + 20.0
        assert_same_bits(seen, np.full(3, right), f"rank {rank} reads its neighbour")
        assert version == 0, f"additions write no slot: version {version}"


@check("window")
def many_windows_are_open_at_once(runner: Runner) -> None:
    """They do not mix; a name is free again after; comm.windows has those that are open."""
    graph = topology.complete(3)

    def program(comm: Any) -> Any:
        left = (comm.rank - 1) % 3
        x = np.array([float(comm.rank)])
        with comm.window(x, name="a") as a, comm.window(x, name="b", push_sum=True) as b:
            assert sorted(comm.windows) == ["a", "b"]
            assert comm.windows["a"] is a
            a.put(x + 10)
            b.accumulate()
            a.fence()
            b.fence()
            first = float(a.slot(left)[0]), float(b.collect()[0])
        with comm.window(x, name="a") as again:
            fresh = float(again.slot(left)[0])
            again.fence()
            again.put(x + 20)
            again.fence()
            later = float(again.slot(left)[0])
        assert not comm.windows
        return *first, fresh, later

    for rank, (put, share, fresh, later) in enumerate(runner(program, 3, topology=graph)):
        left = (rank - 1) % 3
        assert (put, fresh, later) == (left + 10.0, float(rank), left + 20.0)
        assert abs(share - 1.0) < 1e-15, share


@check("window")
def a_window_keeps_its_topology(runner: Runner) -> None:
    """Whatever comm.topology becomes; and another may be given."""
    xs = _values(4, 5, 2)
    ring, full = topology.ring(4), topology.complete(4)

    def program(comm: Any, x: Any) -> Any:
        with comm.window(x, name="ring") as win, comm.window(x, "all", topology=full) as every:
            comm.topology = topology.path(4)
            win.put()
            every.put()
            win.fence()
            every.fence()
            comm.topology = ring
            return win.update(), every.update()

    for rank, (near, every) in enumerate(apply(runner, program, xs, topology=ring)):
        expected = oracle.neighbor_average(ring.to_dense(), xs, rank)
        assert_same_bits(near, expected, f"on the ring, rank {rank}")
        expected = oracle.neighbor_average(full.to_dense(), xs, rank)
        assert_same_bits(every, expected, f"on the complete graph, rank {rank}")


@check("window")
def one_rank_at_a_time_holds_a_mutex(runner: Runner) -> None:
    """Whoever asks for the mutexes of all ranks is alone with them."""
    graph = topology.complete(4)

    def program(comm: Any) -> Any:
        spans = []
        with comm.window(np.zeros(1), name="x") as win:
            for _ in range(3):
                with win.lock(range(4)):
                    start = comm.now()
                    comm.elapse(0.002)
                    spans.append((start, comm.now()))
                with win.lock():
                    pass
        return spans

    spans = sorted(span for rank in runner(program, 4, topology=graph) for span in rank)
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert start >= end, f"two ranks held a mutex at once: {spans}"


@check("window")
def wrong_windows_are_refused(runner: Runner) -> None:
    """Names, dtypes, edges, shapes and shares; and what would lose mass."""

    def opened(call: Any, **options: Any) -> Any:
        def program(comm: Any, x: Any) -> Any:
            with comm.window(x, name="w", **options) as win:
                call(comm, win, x)

        return program

    cases: list[tuple[Any, Any, tuple[str, ...]]] = [
        (lambda c, x: c.window(x, 3), ArgumentTypeError, ("name is 3",)),
        (lambda c, x: c.window(x.astype(int), "w"), ArgumentTypeError, ("int64", "cast")),
        (opened(lambda c, w, x: c.window(x, "w")), ArgumentError, ("'w' is open already",)),
        (opened(lambda c, w, x: w.put(dst_weights=[(c.rank + 2) % 4])), ArgumentError,
         ("no edge to", "out-neighbors are", "ring of 4")),
        (opened(lambda c, w, x: w.get(src_weights=[(c.rank + 2) % 4])), ArgumentError,
         ("no edge to", "in-neighbors are")),
        (opened(lambda c, w, x: w.version((c.rank + 2) % 4)), ArgumentError, ("no edge to",)),
        (opened(lambda c, w, x: w.add(x, [(c.rank + 2) % 4])), ArgumentError, ("no edge to",)),
        (opened(lambda c, w, x: w.add(x, 3)), ArgumentTypeError, ("ranks is 3",)),
        (opened(lambda c, w, x: w.add(x, [c.rank]), push_sum=True), WindowError, ("mass",)),
        (opened(lambda c, w, x: w.put(dst_weights=3)), ArgumentTypeError, ("dst_weights is 3",)),
        (opened(lambda c, w, x: w.put(dst_weights={(c.rank + 1) % 4: float("nan")})),
         ArgumentError, ("dst_weights", "finite")),
        (opened(lambda c, w, x: w.put(x[:2])), ContractError, ("float64[3]", "float64[2]")),
        (opened(lambda c, w, x: w.update(self_weight=0.5)), ArgumentError, ("both or neither",)),
        (opened(lambda c, w, x: (w.free(), w.put())), WindowError, ("'w' was freed",)),
        (opened(lambda c, w, x: w.put(), push_sum=True), WindowError, ("accumulate",)),
        (opened(lambda c, w, x: w.get(), push_sum=True), WindowError, ("mass",)),
        (opened(lambda c, w, x: w.update(), push_sum=True), WindowError, ("collect",)),
        (opened(lambda c, w, x: w.accumulate(self_weight=0.5), push_sum=True), ArgumentError,
         ("sum to 1.16666666667", "mass is made")),
        (lambda c, x: c.window(x, "w", push_sum=True, zero_init=False), ArgumentError, ("mass",)),
        (lambda c, x: c.window(x[: 2 + c.rank % 2], "w"), ContractError,
         ("window('w')", "float64[2]", "float64[3]")),
        (lambda c, x: c.window(x, "w", push_sum=c.rank == 0), ContractError, ("push_sum=True",)),
    ]  # fmt: skip
    for call, kind, words in cases:
        refused(runner, call, kind, *words)


@check("window")
def an_error_frees_windows(runner: Runner) -> None:
    """The error of the program is what is raised, and nobody waits for the others."""

    class MistakeError(ArgumentError):
        pass

    def program(comm: Any, x: Any) -> Any:
        with comm.window(x, name="w") as win:
            if comm.rank == 0:
                raise MistakeError("a mistake in the with block")
            win.wait((comm.rank - 1) % 4, 1)

    refused(runner, program, ArgumentError, "a mistake in the with block")
