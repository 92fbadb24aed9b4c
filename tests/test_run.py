"""``run``: what it returns, and what it says to wrong arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import sim, topology
from dectool.errors import (
    ArgumentError,
    ArgumentTypeError,
    DectoolError,
    MissingDependencyError,
    UnsupportedOperation,
)


def program(comm: Any) -> Any:
    return comm.allreduce(comm.per_rank(lambda rank: np.array([float(rank)])), "sum")


WRONG: list[tuple[type[DectoolError], dict[str, Any], list[str]]] = [
    (ArgumentError, {}, ["number of ranks", "n=", "topology="]),
    (ArgumentError, {"n": 0}, ["n=0", "at least 1"]),
    (ArgumentError, {"n": -3}, ["n=-3", "at least 1"]),
    (ArgumentTypeError, {"n": 2.5}, ["n is 2.5", "integer"]),
    (ArgumentTypeError, {"n": "4"}, ["n is '4'", "integer"]),
    (ArgumentTypeError, {"n": True}, ["n is True", "integer"]),
    (ArgumentError, {"n": 5, "topology": topology.ring(4)}, ["n=5", "ring of 4", "leave n out"]),
    (ArgumentTypeError, {"topology": "ring"}, ["topology is a str", "from_graph"]),
    (ArgumentTypeError, {"topology": np.eye(3)}, ["topology is a ndarray", "from_matrix"]),
    (ArgumentError, {"n": 2, "backend": "stack"}, ["backend='stack'", "'stacked'"]),
    (ArgumentError, {"n": 2, "backend": "zzz"}, ["backend='zzz'", "known: mpi, sim, stacked"]),
    (UnsupportedOperation, {"n": 2, "backend": "nccl"}, ["'nccl'", "'stacked', 'sim', 'mpi'"]),
    (ArgumentTypeError, {"n": 2, "network": 5}, ["network is 5", "AlphaBeta(latency"]),
    (ArgumentTypeError, {"n": 2, "network": sim.AlphaBeta}, ["network is <class", "AlphaBeta("]),
    (ArgumentTypeError, {"n": 2, "compute": 0.5}, ["compute is 0.5", "Exponential(1e-3)"]),
    (ArgumentTypeError, {"n": 2, "seed": 0.5}, ["seed is 0.5", "integer"]),
    (ArgumentError, {"n": 2, "seed": -1}, ["seed=-1", "at least 0"]),
    (ArgumentTypeError, {"n": 2, "seed": None}, ["seed is None", "integer"]),
    (ArgumentError, {"n": 2, "ranks_per_node": 0}, ["ranks_per_node=0", "at least 1"]),
    (ArgumentError, {"n": 2, "timeout": 0}, ["timeout=0", "above 0", "inf"]),
    (ArgumentError, {"n": 2, "stall_timeout": float("nan")}, ["stall_timeout=nan", "above 0"]),
    (ArgumentTypeError, {"n": 2, "timeout": "5"}, ["timeout is '5'", "number of seconds"]),
    (ArgumentTypeError, {"n": 2, "env": "A=b"}, ["env is 'A=b'", "mapping"]),
    (ArgumentTypeError, {"n": 2, "env": {"A": 1}}, ["env['A'] is 1", "strings"]),
    (UnsupportedOperation, {"n": 2, "env": {"A": "b"}}, ["env=", "'sim'", "backend='mpi'"]),
    (
        ArgumentError,
        {"n": 2, "network": sim.AlphaBeta(latency=np.zeros((3, 3)))},
        ["latency", "(3, 3)", "2 ranks", "(2, 2)"],
    ),
    (
        ArgumentError,
        {"n": 2, "network": sim.AlphaBeta(bandwidth=np.ones((3, 3)))},
        ["bandwidth", "(3, 3)", "(2, 2)"],
    ),
]


@pytest.mark.parametrize(("kind", "options", "words"), WRONG, ids=lambda x: str(x)[:40])
def test_wrong_arguments_are_named(
    kind: type[DectoolError], options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        dectool.run(program, **options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("wrong", [5, "program", None])
def test_a_program_must_be_callable(wrong: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=f"program is a {type(wrong).__name__}"):
        dectool.run(wrong, 2)


NETWORKS: dict[str, Callable[[], Any]] = {
    "latency=-1.0 must be finite and at least 0 seconds": lambda: sim.AlphaBeta(-1.0),
    "latency=inf must be finite": lambda: sim.AlphaBeta(np.inf),
    "latency=nan must be finite": lambda: sim.AlphaBeta(np.nan),
    r"latency\[0, 1\]=-2.0 must be": lambda: sim.AlphaBeta([[0, -2.0], [0, 0]]),
    "bandwidth=-5.0 must be above 0 bytes per second": lambda: sim.AlphaBeta(bandwidth=-5),
    "bandwidth=0.0 must be above 0": lambda: sim.AlphaBeta(bandwidth=0),
    "bandwidth=nan must be above 0": lambda: sim.AlphaBeta(bandwidth=np.nan),
    r"bandwidth\[1, 0\]=0.0 must be": lambda: sim.AlphaBeta(bandwidth=[[1, 1], [0, 1]]),
    r"latency has shape \(3,\); it must be a number": lambda: sim.AlphaBeta(np.zeros(3)),
    "port='both': it must be 'serial' or 'parallel'": lambda: sim.AlphaBeta(port="both"),
    "LogGP: L=-1 must be finite and at least 0 seconds": lambda: sim.LogGP(-1),
    "LogGP: o=inf must be finite": lambda: sim.LogGP(0, o=float("inf")),
    "LogGP: g=-2 must be": lambda: sim.LogGP(0, g=-2),
    "LogGP: G=nan must be": lambda: sim.LogGP(0, G=float("nan")),
}


@pytest.mark.parametrize("message", NETWORKS)
def test_wrong_networks_are_named(message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        NETWORKS[message]()


@pytest.mark.parametrize("backend", ["sim", "stacked"])
def test_the_result_holds_values_and_costs(backend: str) -> None:
    network = sim.AlphaBeta(latency=1.0, bandwidth=8.0)
    result = dectool.run(program, 4, backend=backend, network=network)
    assert [float(value[0]) for value in result.values] == [6.0] * 4
    assert len(result.values) == 4
    assert (result.time, list(result.times)) == (4.0, [4.0] * 4)
    assert (result.messages, result.bytes, result.trace) == (8, 64, None)
    assert repr(result) == "<Result of 4 ranks: 4 s, 8 messages, 64 bytes>"


def test_values_of_stacked_are_cut_out_when_asked_for() -> None:
    values = dectool.run(lambda comm: comm.rank + 0, 4, backend="stacked").values
    assert [int(value) for value in values[1:3]] == [1, 2]
    assert int(values[-1]) == 3
    assert repr(values).startswith("StackedValues(")
    with pytest.raises(IndexError):
        values[4]


def test_arguments_reach_the_program() -> None:
    def scaled(comm: Any, factor: float, shift: float) -> float:
        return comm.rank * factor + shift

    assert dectool.run(scaled, 3, args=(2.0, 1.0)).values == [1.0, 3.0, 5.0]


def test_a_schedule_starts_with_its_step_0() -> None:
    schedule = topology.one_peer_exponential(8)

    def names(comm: Any) -> Any:
        first = comm.topology
        comm.topology = comm.schedule.at(2)
        return first is schedule.at(0) and comm.topology is schedule.at(2)

    for backend in ("sim", "stacked"):
        assert list(dectool.run(names, topology=schedule, backend=backend).values) == [True] * 8


def test_branching_on_the_ranks_of_stacked_is_explained() -> None:
    wrong: list[Callable[[Any], Any]] = [
        lambda comm: 1 if comm.rank == 0 else 2,
        lambda comm: float(comm.rank),
        lambda comm: [1, 2, 3][comm.rank],
        lambda comm: {comm.rank: 1},
        lambda comm: range(comm.rank),
        lambda comm: comm.isend(np.zeros(1), 0),
        lambda comm: comm.split(0),
        lambda comm: comm.node,
    ]
    for call in wrong:
        with pytest.raises(UnsupportedOperation, match="backend='sim'"):
            dectool.run(call, 3, backend="stacked")


def test_stacked_arrays_need_the_axis_of_ranks() -> None:
    for x in (np.zeros(5), [np.zeros((3, 2)), np.zeros((2, 2))], np.array(1.0)):
        with pytest.raises(dectool.errors.ContractError, match="one row for each of the 3 ranks"):
            dectool.run(lambda comm, x: comm.allreduce(x), 3, backend="stacked", args=(x,))
    with pytest.raises(dectool.errors.ContractError, match=r"rank 1 has shape \(2,\)"):
        dectool.run(
            lambda comm: comm.per_rank(lambda rank: np.zeros(rank + 1)), 3, backend="stacked"
        )


def test_without_mpi4py_the_line_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(MissingDependencyError, match=r"mpi4py.*pip install 'dectool\[mpi\]'"):
        dectool.run(program, 2, backend="mpi")
