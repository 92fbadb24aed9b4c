"""Messages per CPU-second of the discrete-event simulation.

The rivals are loops written directly on SimPy, with the same ring, the same network model and the
same payloads, but no ranks that block: what is left when everything of dectool is taken away.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import simpy

import dectool
from benchmarks._table import Row, compare, main
from dectool import topology

LATENCY, BANDWIDTH = 1e-5, 1.25e9
ELEMENTS = 10
THIRD = 1 / 3

Rate = Callable[[], float]


def neighbor_allreduce(n: int, steps: int) -> Rate:
    """Averages with both neighbours on a ring, ``steps`` times."""
    ring = topology.ring(n)
    data = np.random.default_rng(0).normal(size=(n, ELEMENTS))

    def program(comm: Any) -> Any:
        x = data[comm.rank]
        for _ in range(steps):
            x = comm.neighbor_allreduce(x)
        return x

    return _rate_of(program, ring)


def pair_gossip(n: int, steps: int) -> Rate:
    """Averages with the neighbour on the right and on the left in turn."""
    data = np.random.default_rng(0).normal(size=(n, ELEMENTS))

    def program(comm: Any) -> Any:
        x = data[comm.rank]
        for k in range(steps):
            x = comm.pair_gossip(x, (comm.rank + 1 if (comm.rank + k) % 2 else comm.rank - 1) % n)
        return x

    return _rate_of(program, topology.ring(n))


def allreduce(n: int, steps: int) -> Rate:
    """All-reduces by recursive doubling."""
    data = np.random.default_rng(0).normal(size=(n, ELEMENTS))

    def program(comm: Any) -> Any:
        x = data[comm.rank]
        for _ in range(steps):
            x = comm.allreduce(x)
        return x

    return _rate_of(program, topology.ring(n))


def simpy_stores(n: int, steps: int) -> Rate:
    """The naive way: a store for each direction of each rank, a process for each message."""

    def run() -> float:
        env = simpy.Environment()
        inboxes = [(simpy.Store(env), simpy.Store(env)) for _ in range(n)]
        data = np.random.default_rng(0).normal(size=(n, ELEMENTS))

        def deliver(store: Any, payload: Any, delay: float) -> Any:
            yield env.timeout(delay)
            store.put(payload)

        def rank(i: int) -> Any:
            x = data[i]
            for _ in range(steps):
                sent = x.copy()
                delay = sent.nbytes / BANDWIDTH
                env.process(deliver(inboxes[(i - 1) % n][1], sent, delay + LATENCY))
                env.process(deliver(inboxes[(i + 1) % n][0], sent, 2 * delay + LATENCY))
                left = yield inboxes[i][0].get()
                right = yield inboxes[i][1].get()
                x = left * THIRD + sent * THIRD + right * THIRD

        for i in range(n):
            env.process(rank(i))
        start = time.process_time()
        env.run()
        return 2 * n * steps / (time.process_time() - start)

    return run


def simpy_callbacks(n: int, steps: int) -> Rate:
    """The fast way: one event for each message, whose callback delivers it."""

    def run() -> float:
        env = simpy.Environment()
        data = np.random.default_rng(0).normal(size=(n, ELEMENTS))
        ranks = [_CallbackRank(env, data[i], steps) for i in range(n)]
        for i, rank in enumerate(ranks):
            rank.left, rank.right = ranks[i - 1], ranks[(i + 1) % n]
        start = time.process_time()
        for rank in ranks:
            rank.send()
        env.run()
        return 2 * n * steps / (time.process_time() - start)

    return run


class _CallbackRank:
    """A ring rank as a hand-written state machine; neighbours are at most one step apart."""

    def __init__(self, env: simpy.Environment, x: Any, steps: int) -> None:
        self.env, self.x, self.steps = env, x, steps
        self.left = self.right = self
        self.step = 0
        self.got: dict[tuple[int, bool], Any] = {}

    def send(self) -> None:
        self.x = self.x.copy()
        delay = self.x.nbytes / BANDWIDTH
        self.post(self.left, True, delay + LATENCY)
        self.post(self.right, False, 2 * delay + LATENCY)

    def post(self, to: _CallbackRank, from_right: bool, delay: float) -> None:
        event = self.env.event()
        event._ok, event._value = True, (self.step, from_right, self.x)
        event.callbacks.append(to.receive)
        self.env.schedule(event, delay=delay)

    def receive(self, event: Any) -> None:
        step, from_right, payload = event.value
        self.got[step, from_right] = payload
        step = self.step
        if (step, True) in self.got and (step, False) in self.got:
            left, right = self.got.pop((step, False)), self.got.pop((step, True))
            self.x = left * THIRD + self.x * THIRD + right * THIRD
            self.step = step + 1
            if self.step < self.steps:
                self.send()


def _rate_of(program: Callable[..., Any], graph: topology.Topology) -> Rate:
    network = dectool.sim.AlphaBeta(latency=LATENCY, bandwidth=BANDWIDTH)

    def run() -> float:
        start = time.process_time()
        result = dectool.run(program, backend="sim", topology=graph, network=network)
        return result.messages / (time.process_time() - start)

    return run


def _medians(rates: dict[str, Rate], repetitions: int) -> dict[str, float]:
    found: dict[str, list[float]] = {name: [] for name in rates}
    for _ in range(repetitions):
        for name, rate in rates.items():
            found[name].append(rate())
    return {name: median(values) for name, values in found.items()}


def measure(tell: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    rows = []
    for n, steps, repetitions in ((1_000, 250, 5), (10_000, 20, 3)):
        tell(f"ring of {n:,} ranks")
        rate = _medians(
            {
                "ours": neighbor_allreduce(n, steps),
                "callbacks": simpy_callbacks(n, steps),
                "stores": simpy_stores(n, steps // 10),
                "gossip": pair_gossip(n, steps // 5),
                "allreduce": allreduce(n, max(1, steps // 50)),
            },
            repetitions,
        )
        least = 150_000 if n == 1_000 else None
        name = f"neighbor_allreduce, ring of {n:,}"
        rows += [
            compare(f"{name}; SimPy, callbacks", rate["ours"], rate["callbacks"], at_least=least),
            compare(f"{name}; SimPy, stores", rate["ours"], rate["stores"]),
            compare(f"pair_gossip, {n:,} ranks", rate["gossip"]),
            compare(f"allreduce, {n:,} ranks", rate["allreduce"]),
        ]
    return rows, [
        f"Each message carries {ELEMENTS} float64, copied and averaged; starting the ranks counts.",
        "The SimPy loops are written for this one exchange. Above 1, dectool is faster.",
    ]


if __name__ == "__main__":
    main("Event simulation", measure, unit="messages per CPU-second")
