"""Windows of processes: the bits, versions, messages and bytes of the simulator, on every way."""

from __future__ import annotations

import gc
import os
import threading
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import compression, topology
from dectool.errors import WindowError
from dectool.testing import CHECKS, Check
from dectool.testing._kinds import averageable
from tests.mpi.window_ways import WAYS, by_way, reached, same_as_sim

GRAPHS = (topology.complete(4), topology.ring(4), topology.exponential(4), topology.star(4))
KINDS = {kind.name: kind for kind in averageable()}
SOME = ("numpy float64", "numpy float32", "numpy float16", "numpy bfloat16", "numpy complex64")


class FarRunner:
    """Runs programs of the suite with every rank on a node of its own."""

    unsupported: frozenset[str] = frozenset()

    def __init__(self, cluster: dectool.Cluster) -> None:
        self._cluster = cluster

    def __call__(self, program: Any, n: int, **options: Any) -> Any:
        options.setdefault("ranks_per_node", 1)
        run = self._cluster.run
        return run(by_way(program, "messages"), n, timeout=10.0, **options).values


@pytest.mark.parametrize(
    "check", [c for c in CHECKS if "window" in c.needs], ids=lambda check: check.name
)
def test_messages_conform(
    check: Check, cluster: dectool.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dectool.testing._windows.SIZES", (1, 3))
    check(FarRunner(cluster))


def lines(comm: Any) -> Any:
    """Do what the interface promises, with fences where ranks would otherwise race."""
    me, n = comm.rank, comm.size
    left, right = (me - 1) % n, (me + 1) % n
    x = np.array([me + 1.0, 0.1])
    only_left = {left: 1.0} if n > 1 else {}
    only_right = {right: 0.5} if n > 1 else {}
    half = dict.fromkeys(only_left, 0.5)
    with comm.window(x, name="params") as win:
        win.put(x)
        request = win.iput(x)
        request.wait()
        win.accumulate(x, dst_weights=only_right, self_weight=0.5)
        win.fence()
        win.get(src_weights=only_left)
        win.fence()
        x = win.update()
        x = win.update(self_weight=0.5, src_weights=half)
        seen = [(win.version(j), win.staleness(j)) for j in only_left]
    share = 1.0 / (len(comm.topology.out_neighbors(me)) + 1)
    shares = dict.fromkeys(comm.topology.out_neighbors(me), share)
    with comm.window(x, name="p", push_sum=True) as win:
        win.accumulate(dst_weights=shares, self_weight=share)
        win.fence()
        win.collect()
        return x, seen, win.value, win.weight, win.debiased


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_interface_in_a_few_lines(cluster: dectool.Cluster, n: int, way: str) -> None:
    same_as_sim(cluster, lines, n, way, topology=topology.complete(n))


def draw(comm: Any, chance: np.random.Generator, kind: str, size: int) -> Any:
    """Return a value of a kind that holds something else on each rank."""
    x = chance.normal(size=size) + comm.rank
    if kind == "container":
        return {"w": x.astype(np.float32), "b": [x[:1], x.reshape(-1, 1).astype(np.float16)]}
    if KINDS[kind].is_complex:
        x = x + 1j * x[::-1]
    return KINDS[kind].make(x)


def sequence(comm: Any, seed: int, kind: str, size: int, compressor: Any, steps: int) -> list[Any]:
    """Write, read and mix at random; fences keep apart who would race."""
    graph = GRAPHS[seed % len(GRAPHS)]
    alone = np.random.default_rng([seed, comm.rank])
    together = np.random.default_rng(seed)
    kept: list[Any] = []
    x = draw(comm, alone, kind, size)
    first = bool(seed % 3 == 0)
    with comm.window(x, name="w", topology=graph, zero_init=first, compressor=compressor) as win:
        out, into = graph.out_neighbors(comm.rank), graph.in_neighbors(comm.rank)
        for _ in range(steps):
            requests = []
            for _ in range(alone.integers(4)):
                some = {j: float(alone.normal()) for j in out if alone.random() < 0.7}
                y = draw(comm, alone, kind, size) if alone.random() < 0.6 else None
                operation = win.iput if alone.random() < 0.5 else win.iaccumulate
                self_weight = 0.5 if alone.random() < 0.3 else None
                requests.append(operation(y, dst_weights=some, self_weight=self_weight))
            for request in requests[: alone.integers(5)]:
                request.wait()
            win.fence()
            if alone.random() < 0.5:
                win.get(src_weights={j: 0.5 + j for j in into if alone.random() < 0.7})
            win.fence()
            kept += [(win.slot(j), win.version(j), win.staleness(j)) for j in into]
            what = together.integers(4)
            if what == 0:
                kept.append(win.update())
            elif what == 1:
                weights = {j: float(alone.normal()) for j in into if alone.random() < 0.7}
                kept.append(win.update(self_weight=0.25, src_weights=weights, reset=True))
            elif what == 2:
                kept.append(win.collect())
            kept.append(win.value)
            win.fence()
    return kept


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(6))
def test_random_sequences(cluster: dectool.Cluster, seed: int, way: str) -> None:
    kind = [*SOME, "container"][seed]
    size = [5, 1, 30_000, 1000, 9000, 7][seed]
    same_as_sim(cluster, sequence, 4, way, args=(seed, kind, size, None, 8), seed=seed)


@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("name", ["minmax8", "topk", "sign"])
def test_compressed_sequences(cluster: dectool.Cluster, name: str, way: str) -> None:
    compressor = {
        "minmax8": compression.MinMax8(),
        "topk": compression.TopK(0.1),
        "sign": compression.ScaledSign(),
    }[name]
    args = (7, "numpy float32", 3000, compressor, 4)
    same_as_sim(cluster, sequence, 4, way, args=args, seed=1)


@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("torch")])
def test_tensors(cluster: dectool.Cluster, kind: str, way: str) -> None:
    same_as_sim(cluster, sequence, 4, way, args=(4, kind, 300, None, 3), seed=1)


def test_large_values_by_message(cluster: dectool.Cluster) -> None:
    """Of 1 MB, in pieces and in both directions at once."""
    args = (0, "numpy float64", 150_000, None, 2)
    same_as_sim(cluster, sequence, 4, "messages", args=args, seed=1)


def test_groups_and_names(cluster: dectool.Cluster) -> None:
    """Each group has its own window of one name; a name is used again and again."""

    def program(comm: Any) -> list[Any]:
        group = comm.split(comm.rank % 2)
        group.topology = topology.ring(group.size)
        kept = []
        for k in range(5):
            x = np.full(3, 10.0 * k + comm.rank)
            with (
                group.window(x, name="w") as one,
                comm.window(x, "w", topology.ring(comm.size), push_sum=True) as other,
            ):
                one.put()
                other.accumulate()
                one.fence()
                other.fence()
                kept += [one.update(), other.collect(), other.weight]
        return kept

    for way in WAYS:
        same_as_sim(cluster, program, 4, way)


def test_memory_that_cannot_be_mapped_is_reached_by_message(cluster: dectool.Cluster) -> None:
    """One rank may not map another's memory; the other serves it though it expects nobody."""

    def program(comm: Any) -> Any:
        if comm.backend == "mpi" and comm.rank == 1:
            from dectool.backends.mpi import _window

            before = _window.attach

            def refuse(place: Any) -> Any:
                raise PermissionError

            _window.attach = refuse
            try:
                return sequence(comm, 1, "numpy float64", 2000, None, 4)
            finally:
                _window.attach = before
        return sequence(comm, 1, "numpy float64", 2000, None, 4)

    same_as_sim(cluster, program, 4, "memory")


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_left(cluster: dectool.Cluster, way: str) -> None:
    """No descriptor, no mapping, no thread, no name."""

    def state() -> tuple[int, int, int]:
        with open("/proc/self/maps") as maps:
            mapped = sum("memfd:dectool" in line or "/dev/shm" in line for line in maps)
        return len(os.listdir("/proc/self/fd")), mapped, threading.active_count()

    def program(comm: Any, windows: int) -> Any:
        graph = topology.ring(comm.size)
        for k in range(windows):
            with comm.window(np.zeros(100 << k), "w", graph) as win:
                win.put()
        opened = [comm.window(np.zeros(9), f"never freed {k}", graph) for k in range(windows)]
        for win in opened:
            win.put()
        return len(opened)

    def measure(comm: Any) -> Any:
        gc.collect()
        comm.barrier()
        return state()

    cluster.run(by_way(program, way), n=4, args=(1,))
    before = cluster.run(measure, n=4).values
    cluster.run(by_way(program, way), n=4, args=(8,))
    assert list(cluster.run(measure, n=4).values) == list(before)


@pytest.mark.parametrize("way", WAYS)
def test_writing_to_a_freed_window_is_harmless(cluster: dectool.Cluster, way: str) -> None:
    def program(comm: Any) -> str:
        with reached(comm, way):
            win = comm.window(np.full(50_000, float(comm.rank)), "w", topology.ring(2))
            comm.barrier()
            if comm.rank == 0:
                win.free()
                comm.barrier()
                comm.barrier()
                return repr(win)
            comm.barrier()
            for _ in range(3):
                win.put(np.ones(50_000))
                with win.lock([comm.rank]):
                    win.accumulate()
            said = ""
            try:
                win.get()
            except WindowError as error:
                said = str(error)
            comm.barrier()
            return said

    freed, said = cluster.run(program, n=2, timeout=10.0).values
    assert "freed" in freed
    assert said == ("" if way == "memory" else "window 'w' was freed by rank 0")


@pytest.mark.parametrize("way", WAYS)
def test_windows_that_live_shortly_are_not_mixed_up(cluster: dectool.Cluster, way: str) -> None:
    """One rank frees a window before its neighbour has mapped it, and opens the next."""

    def program(comm: Any) -> list[float]:
        seen = []
        for k in range(60):
            win = comm.window(np.full(1000, float(k)), f"{k % 2}", topology.ring(4))
            if k % 20 == 19:
                comm.barrier()
                win.put()
                win.fence()
                seen.append(float(win.slot((comm.rank + 1) % 4)[-1]))
            win.free()
        return seen

    found = cluster.run(by_way(program, way), n=4, timeout=10.0).values
    assert list(found) == [[19.0, 39.0, 59.0]] * 4
