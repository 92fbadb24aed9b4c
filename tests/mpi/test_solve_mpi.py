"""``solve`` on real processes: the History of the simulator, but for the time."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, topology
from dectool.backends.mpi import _variables
from dectool.errors import ArgumentTypeError, UnsupportedOperation
from dectool.metrics import COLUMNS

RING = topology.ring(4)
QUADRATIC = problems.Quadratic(h=np.arange(1.0, 5.0)[:, None], b=np.arange(4.0)[:, None])


def solve(backend: Any, **options: Any) -> dectool.History:
    options = {"topology": RING, "steps": 40, **options}
    algorithm = options.pop("algorithm", algorithms.EXTRA(lr=0.1))
    problem = options.pop("problem", QUADRATIC)
    return dectool.solve(algorithm, problem, backend=backend, **options)


def assert_same(one: dectool.History, other: dectool.History) -> None:
    assert one.x.tobytes() == other.x.tobytes()
    assert one.status == other.status
    for name in COLUMNS:
        if name != "time":
            np.testing.assert_array_equal(one[name], other[name], name)
    assert list(one.state) == list(other.state)


def logistic() -> problems.Problem:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(40, 3))
    labels = (features @ [1.0, -2.0, 0.5] > 0).astype(int)
    return problems.LogisticRegression(features, labels, n=4, l2=0.1)


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "plain": dict,
    "every 7": lambda: {"record_every": 7},
    "stop": lambda: {"stop": {"gap": 1e-5}},
    "stop by a function": lambda: {"stop": lambda record: record["step"] >= 12},
    "diverges": lambda: {"algorithm": algorithms.EXTRA(lr=50.0), "steps": 900, "record_every": 50},
    "schedule": lambda: {
        "topology": topology.one_peer_exponential(4),
        "algorithm": algorithms.ATC(lr=0.1),
    },
    "tracking": lambda: {"algorithm": algorithms.ATCGradientTracking(lr=0.05), "seed": 3},
    "two matrices, one of a schedule": lambda: {
        "algorithm": algorithms.PushPull(
            lr=0.05, pull=topology.periodic([topology.star(4, weights="uniform"), RING])
        ),
        "topology": topology.directed_ring(4),
    },
    "running sums": lambda: {
        "algorithm": algorithms.RobustPushSum(),
        "problem": problems.Averaging(np.eye(4)),
        "topology": topology.exponential(4, weights="uniform_push"),
        "missing": "self",
    },
}


@pytest.mark.filterwarnings("ignore:.*diverged")
@pytest.mark.parametrize("case", CASES)
def test_the_history_is_that_of_sim(case: str, cluster: dectool.Cluster) -> None:
    options = CASES[case]()
    one, other = solve("sim", **options), solve(cluster, **options)
    assert_same(one, other)
    assert other.about["backend"] == "mpi"
    assert (np.diff(other["time"]) >= 0).all()
    assert other["time"][-1] > 0


def test_minibatches_are_the_same(cluster: dectool.Cluster) -> None:
    options = {"problem": logistic(), "batch_size": 4, "seed": 5, "steps": 20}
    assert_same(solve("sim", **options), solve(cluster, **options))


@pytest.mark.parametrize("backends", [("sim", "mpi"), ("mpi", "stacked"), ("mpi", "mpi")])
def test_a_run_goes_on_elsewhere(
    backends: tuple[str, str], cluster: dectool.Cluster, tmp_path: Path
) -> None:
    first, second = (cluster if name == "mpi" else name for name in backends)
    half = solve(first, steps=17)
    half.save(tmp_path / "half.npz")
    half = dectool.History.load(tmp_path / "half.npz")
    assert_same(solve("sim"), solve(second, resume=half))


def test_an_error_in_stop_is_raised(cluster: dectool.Cluster) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        solve(cluster, stop=lambda record: 1 / 0)
    assert "rank 0 of 4" in "".join(caught.value.__notes__)


SCRIPT = """
    import os
    import numpy as np
    import dectool
    from dectool import algorithms, problems, topology

    problem = problems.Quadratic(h=np.arange(1.0, 5.0)[:, None], b=np.arange(4.0)[:, None])
    for stop in ({"gap": 1e-5}, lambda record: record["step"] >= 12):
        history = dectool.solve(
            algorithms.EXTRA(lr=0.1), problem, topology=topology.ring(4), steps=40, backend="mpi",
            stop=stop,
        )
        os.write(1, f"{history.status} {history.step} {history.x.tobytes().hex()}\\n".encode())
"""


def test_every_rank_of_a_joined_job_has_the_history(tmp_path: Path) -> None:
    """What stops the run may be a function of the script, which only the script can import."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [_variables.mpiexec(), "-n", "4", sys.executable, str(script)],
        env=_variables.environment({}),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    found = [solve("sim", **CASES[case]()) for case in ("stop", "stop by a function")]
    lines = [f"stopped {history.step} {history.x.tobytes().hex()}" for history in found]
    assert sorted(done.stdout.splitlines()) == sorted(4 * lines), done.stdout + done.stderr
    assert done.returncode == 0


def test_modelled_computing_takes_real_time(cluster: dectool.Cluster) -> None:
    model = dectool.sim.PerRank({2: 5.0}, dectool.sim.Constant(2e-3))
    history = solve(cluster, compute=model, steps=10)
    assert_same(solve("sim", compute=model, steps=10), history)
    assert history["time"][-1] >= 10 * 1e-2


def test_wrong_options_are_named(cluster: dectool.Cluster) -> None:
    with pytest.raises(UnsupportedOperation, match="network of backend 'mpi' is real"):
        solve(cluster, network=dectool.sim.AlphaBeta())
    with pytest.raises(ArgumentTypeError, match="env is 5"):
        solve("mpi", env=5)
