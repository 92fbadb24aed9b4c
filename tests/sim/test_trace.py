"""The trace: what each rank did when, and a file that Perfetto reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import sim, topology
from dectool.errors import UnsupportedOperation


@pytest.fixture
def trace() -> sim.Trace:
    def program(comm: Any) -> None:
        if comm.rank == 0:
            with comm.computing():
                pass
            comm.send(np.zeros(4), 1, tag=7)
        if comm.rank == 1:
            comm.recv(0, tag=7)
            comm.elapse(1.0)

    network = sim.AlphaBeta(latency=0.5, bandwidth=64.0)
    result = dectool.run(program, 3, network=network, compute=sim.Constant(2.0), trace=True)
    assert result.time == 4.0
    assert result.trace is not None
    return result.trace


def test_spans_and_messages(trace: sim.Trace) -> None:
    assert set(trace.spans) == {
        (0, "compute", 0.0, 2.0, "compute"),
        (1, "wait", 0.0, 3.0, "wait for 0"),
        (1, "compute", 3.0, 4.0, "compute"),
    }
    assert trace.messages == [(0, 1, 32, 2.0, 3.0, "recv(tag=7)")]


def test_shares_are_of_the_whole_run(trace: sim.Trace) -> None:
    assert trace.shares() == [
        {"compute": 0.5, "wait": 0.0, "idle": 0.5},
        {"compute": 0.25, "wait": 0.75, "idle": 0.0},
        {"compute": 0.0, "wait": 0.0, "idle": 1.0},
    ]


def test_chrome_file(trace: sim.Trace, tmp_path: Path) -> None:
    path = trace.to_chrome(tmp_path / "run.json")
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == 3
    assert {key: spans[0][key] for key in ("name", "cat", "ts", "dur", "tid")} == {
        "name": "compute",
        "cat": "compute",
        "ts": 0.0,
        "dur": 2e6,
        "tid": 0,
    }
    begin, end = (event for event in events if event["ph"] in "sf")
    assert (begin["tid"], begin["ts"], begin["args"]) == (0, 2e6, {"bytes": 32})
    assert (end["tid"], end["ts"], end["id"]) == (1, 3e6, begin["id"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_a_file_that_cannot_be_written_leaves_nothing(trace: sim.Trace, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        trace.to_chrome(tmp_path / "taken")
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]


def test_every_message_is_recorded() -> None:
    for network in (sim.AlphaBeta(1e-3, 1e6), sim.LogGP(1e-3, 1e-4, 1e-4, 1e-6)):
        result = dectool.run(
            lambda comm: comm.neighbor_allreduce(np.zeros(3)),
            topology=topology.ring(5),
            network=network,
            trace=True,
        )
        assert result.trace is not None
        assert len(result.trace.messages) == result.messages == 10
        assert sum(record.nbytes for record in result.trace.messages) == result.bytes
        assert {record.operation for record in result.trace.messages} == {"neighbor_allreduce"}
        assert all(record.arrival > record.start for record in result.trace.messages)


def test_waits_of_background_operations_do_not_count_as_the_programs() -> None:
    def program(comm: Any) -> None:
        request = comm.iallreduce(np.zeros(1))
        comm.elapse(10.0)
        request.wait()

    result = dectool.run(program, 2, network=sim.AlphaBeta(1.0), trace=True)
    assert result.trace is not None
    assert {span.kind for span in result.trace.spans} == {"compute", "background"}
    assert result.trace.shares() == [{"compute": 1.0, "wait": 0.0, "idle": 0.0}] * 2


def test_stacked_has_no_trace() -> None:
    with pytest.raises(UnsupportedOperation, match="trace=True needs single ranks"):
        dectool.run(lambda comm: None, 2, backend="stacked", trace=True)
