"""Messages queue at ports: LogGP, incast, and the waiting time of an M/D/1 queue."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import dectool
from dectool.sim import AlphaBeta, LogGP


def lindley(arrivals: np.ndarray, service: float) -> np.ndarray:
    """Return the waiting time of each customer of a first-come-first-served queue."""
    walk = np.concatenate([[0.0], np.cumsum(service - np.diff(arrivals))])
    return walk - np.minimum.accumulate(walk)


def test_loggp_point_to_point() -> None:
    net = LogGP(L=1e-5, o=2e-6, g=3e-6, G=1e-9)
    for k in (1, 8, 1000):

        def program(comm: Any, k: int = k) -> float:
            if comm.rank:
                comm.recv(0)
            else:
                comm.send(np.zeros(k, np.uint8), 1)
            return comm.now()

        sent, received = dectool.run(program, 2, network=net).values
        assert sent == pytest.approx(net.o)
        assert received == pytest.approx(net.L + 2 * net.o + (k - 1) * net.G, rel=1e-12)


def test_loggp_gap_keeps_the_sender() -> None:
    """Message k leaves after k gaps and payloads."""
    net = LogGP(L=1e-5, o=0.0, g=3e-6, G=1e-9)

    def program(comm: Any) -> list[float]:
        times = []
        for _ in range(4):
            if comm.rank:
                comm.recv(0)
            else:
                comm.send(np.zeros(1001, np.uint8), 1)
            times.append(comm.now())
        return times

    times = dectool.run(program, 2, network=net).values[1]
    expected = [net.L + (k + 1) * 1e-6 + k * net.g for k in range(4)]
    assert times == pytest.approx(expected, rel=1e-12)


def test_incast_comes_in_one_after_the_other() -> None:
    """k senders of M bytes keep the receiver's port for k M / B."""
    k, m, bandwidth = 7, 10_000_001, 1.25e9
    net = LogGP(L=1e-5, G=1 / bandwidth)

    def program(comm: Any) -> None:
        if comm.rank:
            comm.send(torch.empty(m, dtype=torch.uint8, device="meta"), 0)
        else:
            for source in range(1, k + 1):
                comm.recv(source)

    result = dectool.run(program, k + 1, network=net)
    assert result.time == pytest.approx(1e-5 + k * (m - 1) / bandwidth, rel=1e-12)
    free = AlphaBeta(1e-5, bandwidth)
    assert dectool.run(program, k + 1, network=free).time == pytest.approx(1e-5 + m / bandwidth)


def test_the_port_serves_in_order_of_arrival_not_of_rank() -> None:
    net = LogGP(L=0.0, G=1e-3)

    def program(comm: Any) -> list[float] | None:
        if comm.rank == 0:
            arrivals = []
            for source in (2, 1, 3):
                comm.recv(source)
                arrivals.append(comm.now())
            return arrivals
        comm.elapse({1: 0.5, 2: 0.0, 3: 0.9}[comm.rank])
        comm.send(np.zeros(1001, np.uint8), 0)
        return None

    assert dectool.run(program, 4, network=net).values[0] == pytest.approx([1.0, 2.0, 3.0])


def test_mean_wait_at_a_sending_port_is_that_of_m_d_1() -> None:
    """ρ / (2 μ (1 - ρ)) for Poisson sends of sixteen ranks, and each wait as Lindley has it."""
    mu, rho, count = 1.0, 0.3, 50_000

    def program(comm: Any) -> np.ndarray:
        times = np.empty(count)
        gaps = comm.rng("gaps").exponential(mu / rho, count).tolist()
        message = np.zeros(1)
        for k in range(count):
            if comm.rank % 2:
                comm.recv(comm.rank - 1)
            else:
                comm.elapse(gaps[k])
                comm.isend(message, comm.rank + 1)
            times[k] = comm.now()
        return times

    network = AlphaBeta(latency=0.25, bandwidth=8 * mu)
    times = dectool.run(program, 32, network=network).values
    waits, gaps = [], []
    for sent, received in zip(times[0::2], times[1::2], strict=True):
        waits.append(received - sent - 0.25 - 1 / mu)
        gaps.append(np.diff(sent))
        np.testing.assert_allclose(waits[-1], lindley(sent, 1 / mu), atol=1e-6)
    # The load that was drawn, so that its own sampling error does not count.
    drawn = 1 / (mu * np.mean(gaps))
    assert np.mean(waits) == pytest.approx(drawn / (2 * mu * (1 - drawn)), rel=0.01)


def test_a_receiving_port_of_loggp_is_the_same_queue() -> None:
    """Poisson arrivals, one message from each of many ranks."""
    n, rho = 2000, 0.5
    starts = np.cumsum(np.random.default_rng(0).exponential(1 / rho, n))

    def program(comm: Any) -> Any:
        if comm.rank:
            comm.elapse(starts[comm.rank - 1])
            comm.send(np.zeros(1001, np.uint8), 0)
            return None
        arrivals = np.empty(n)
        for source in range(1, n + 1):
            comm.recv(source)
            arrivals[source - 1] = comm.now()
        return arrivals

    got = dectool.run(program, n + 1, network=LogGP(L=0.0, G=1e-3)).values[0]
    np.testing.assert_allclose(got - starts - 1.0, lindley(starts, 1.0), atol=1e-9)
    assert (got - starts - 1.0).mean() == pytest.approx(rho / (2 * (1 - rho)), rel=0.1)
