"""Ranks on several hosts compute what simulated ranks compute, over the links between the hosts."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import topology
from dectool.testing._lab import Lab

STEPS = 3
SIZES = (1, 1000, 200_000)


def averages(comm: Any) -> list[str]:
    """Return a digest of each average, which says little over the link."""
    found = []
    for size in SIZES:
        x = comm.rng("start").standard_normal(size)
        for _ in range(STEPS):
            x = comm.neighbor_allreduce(x)
        found.append(hashlib.sha256(x.tobytes()).hexdigest())
    return found


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.usefixtures("rights")
def test_the_bits_are_those_of_the_simulator(n: int) -> None:
    graph = topology.ring(2 * n)
    with Lab(n, rate=125e6) as lab:
        before = [lab.sent(host) for host in range(n)]
        result = dectool.run(
            averages,
            topology=graph,
            seed=7,
            backend="mpi",
            hosts=[f"{address}:2" for address in lab.addresses],
            launcher=lab.launcher,
            env=lab.variables,
        )
        sent = [lab.sent(host) - before[host] for host in range(n)]
        assert lab.processes() == []
    expected = dectool.run(averages, topology=graph, seed=7, backend="sim")
    assert list(result.values) == list(expected.values)
    assert (result.messages, result.bytes) == (expected.messages, expected.bytes)
    # Of the four messages that the two ranks of a host send in a step, two leave it.
    payload = 2 * STEPS * 8 * sum(SIZES)
    assert all(payload < bytes_sent < 1.3 * payload for bytes_sent in sent)


def test_ranks_know_their_hosts(cluster: dectool.Cluster, lab: Lab) -> None:
    def program(comm: Any) -> Any:
        place = (comm.node_rank, comm.num_nodes, comm.local_rank, comm.local_size)
        return socket.gethostname(), place

    first, second = lab.names
    assert list(cluster.run(program).values) == [
        (first, (0, 2, 0, 2)),
        (first, (0, 2, 1, 2)),
        (second, (1, 2, 0, 2)),
        (second, (1, 2, 1, 2)),
    ]


def test_output_comes_from_all_hosts(
    cluster: dectool.Cluster, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    def program(comm: Any) -> None:
        for line in range(500):
            print(f"line {line} from {socket.gethostname()}")
        print("an error", file=sys.stderr)

    cluster.run(program)
    shown = capsys.readouterr()
    for rank in range(4):
        mine = [line for line in shown.out.splitlines() if line.startswith(f"[{rank}] ")]
        assert mine == [f"[{rank}] line {k} from {lab.names[rank // 2]}" for k in range(500)]
    assert sorted(shown.err.splitlines()) == [f"[{rank}] an error" for rank in range(4)]


def test_large_arguments_and_values_pass(cluster: dectool.Cluster) -> None:
    x = np.random.default_rng(0).standard_normal(1 << 20)

    def program(comm: Any, array: Any) -> Any:
        return array + comm.rank

    for rank, value in enumerate(cluster.run(program, args=(x,)).values):
        assert np.array_equal(value, x + rank)


def test_slots_say_where_ranks_run(lab: Lab) -> None:
    first, second = lab.addresses
    result = dectool.run(
        lambda comm: (socket.gethostname(), os.getcwd()),
        n=3,
        backend="mpi",
        hosts=[first, f"{second}:3"],
        launcher=[lab.launcher, "-o", "BatchMode=yes"],
        env=lab.variables,
    )
    expected = [lab.names[0], lab.names[1], lab.names[1]]
    assert list(result.values) == [(name, os.getcwd()) for name in expected]


def test_the_command_line(lab: Lab, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import socket\n\ndef program(comm):\n    return socket.gethostname()\n")
    hosts = ",".join(lab.addresses)
    words = ["run", str(script), "--backend", "mpi", "--hosts", hosts, "--launcher", lab.launcher]
    done = subprocess.run(
        [sys.executable, "-m", "dectool", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
        env={**os.environ, **lab.variables},
    )
    assert done.returncode == 0, done.stderr
    for name in lab.names:
        assert f"'{name}'" in done.stdout
