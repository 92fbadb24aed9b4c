"""How long a round of gossip takes on a network."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dectool.communicator import Communicator
from dectool.errors import ArgumentTypeError
from dectool.run import run
from dectool.theory._arguments import whole
from dectool.topology import Schedule, Topology, as_schedule

ITEM = 8
"""Bytes of a number in float64."""

_DENSE, _MOST = 8, 256
_MESSAGES = 2**15


def seconds_per_round(
    topology: Topology | Schedule,
    network: Any,
    nbytes: int,
    *,
    compute: Any = None,
    seed: int = 0,
) -> float:
    r"""Return the seconds that a round of gossip takes, in the long run.

    Each rank sends its value to its out-neighbors, waits for those of its in-neighbors, and goes
    on to the next round; nobody waits for anybody else. It is measured in virtual time,

    .. math:: (T_{2R} - T_R) / R, \qquad T_k = \text{the time at which all have done round } k

    with R whole periods of the schedule: as many rounds as there are ranks, fewer on dense graphs,
    where clocks soon fall into step.

    Args:
        topology: A topology, or a schedule; one without a period is measured over its first steps.
        network: A network model of :mod:`dectool.sim`.
        nbytes: Bytes of a message, at least 1.
        compute: A compute model of :mod:`dectool.sim`: what a rank computes before each round;
            default: nothing.
        seed: Seed of random compute times.

    Raises:
        ArgumentError: ``nbytes`` is below 1, or the network is for another number of ranks.
        ArgumentTypeError: ``network`` is no network model.

    Example:
        >>> from dectool import sim, topology
        >>> net = sim.AlphaBeta(latency=1e-5, bandwidth=1.25e9)
        >>> round(seconds_per_round(topology.ring(8), net, nbytes=10**8), 9)  # 1e-5 + 2 * 0.08
        0.16001
        >>> round(seconds_per_round(topology.one_peer_exponential(8), net, nbytes=10**8), 9)
        0.08001
    """
    schedule = as_schedule(topology)
    size = whole("nbytes", nbytes, 1)
    check_network(network)
    rounds = rounds_to_time(schedule)
    # Only a receiving port that queues needs single ranks; all at once are timed faster.
    stacked = not network.serial_receive
    x = np.zeros((schedule.size, 1) if stacked else 1)

    def program(comm: Communicator) -> Any:
        marks = []
        for k in range(2 * rounds):
            with comm.computing():
                pass
            comm.topology = schedule.at(k)
            comm.neighbor_allreduce(x)
            if k + 1 in (rounds, 2 * rounds):
                marks.append(np.max(comm.now()))
        return marks

    result = run(
        program,
        schedule.size,
        backend="stacked" if stacked else "sim",
        topology=schedule,
        network=network.scaled(size / ITEM),
        compute=compute,
        seed=seed,
    )
    first, last = np.max(list(result.values), axis=0)
    return float(last - first) / rounds


def rounds_to_time(schedule: Schedule, least: int = 16, period: int = 1) -> int:
    """Return after how many rounds the clocks of ranks that wait for neighbors are in step.

    They need no more rounds than the graph is wide, but for a few; dense graphs, on which rounds
    are slow to simulate, are not wide. They are whole periods of the schedule, and of ``period``.
    """
    period = math.lcm(schedule.period or 1, period)
    messages = max(1, int(schedule.at(0).in_degrees.sum()))
    rounds = min(max(least, schedule.size), _MOST, max(_DENSE, _MESSAGES // messages))
    return period * math.ceil(rounds / period)


def check_network(network: Any) -> None:
    """Refuse what is no network model.

    Raises:
        ArgumentTypeError: It is none.
    """
    if not hasattr(network, "scaled") or isinstance(network, type):
        raise ArgumentTypeError(
            f"network is {network!r}; give a network model, such as "
            "dectool.sim.AlphaBeta(latency=1e-5, bandwidth=1e9)"
        )
