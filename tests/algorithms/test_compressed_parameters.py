"""Parameters of compressed algorithms: names, schedules, and what is refused."""

import numpy as np
import pytest

import dectool
from dectool import algorithms, compression, problems, topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError

REFUSED = {
    "no compressor": (lambda: algorithms.CHOCO(lr=0.1, compressor=3), ["CHOCO", "TopK(0.01)"]),
    "unknown name": (lambda: algorithms.LEAD(lr=0.1, compressor="topp:3"), ["topp", "topk"]),
    "memory": (
        lambda: algorithms.BEER(lr=0.1, compressor="ef:topk:2"),
        ["BEER", "ef:topk:2", "keeps its own", "topk:2"],
    ),
    "reference": (
        lambda: algorithms.DCD(lr=0.1, compressor="moniqua:1"),
        ["DCD", "moniqua:1", "algorithms.Moniqua"],
    ),
    "gamma 0": (lambda: algorithms.CHOCOGossip(gamma=0.0), ["CHOCOGossip", "gamma=0.0", "1"]),
    "gamma above 1": (lambda: algorithms.BEER(lr=0.1, gamma=1.5), ["BEER", "gamma=1.5"]),
    "gamma of LEAD": (lambda: algorithms.LEAD(lr=0.1, gamma=-1.0), ["LEAD", "above 0"]),
    "no number": (lambda: algorithms.CHOCO(lr=0, gamma="a"), ["gamma is 'a'"]),
    "rate": (lambda: algorithms.CEDAS(lr=0.1, rate=2.0), ["CEDAS", "rate=2.0"]),
    "eta": (lambda: algorithms.DeepSqueeze(lr=0.1, eta=0.0), ["DeepSqueeze", "eta=0.0"]),
    "theta": (lambda: algorithms.Moniqua(lr=0.1, theta=-1.0), ["Moniqua", "theta"]),
    "bits": (lambda: algorithms.Moniqua(lr=0.1, bits=40), ["Moniqua", "bits"]),
    "momentum": (lambda: algorithms.DGC(lr=0.1, momentum=1.0), ["DGC", "momentum=1.0"]),
    "momentum is no number": (lambda: algorithms.DGC(lr=0.1, momentum="a"), ["momentum is 'a'"]),
    "warm-up": (lambda: algorithms.OneBitAdam(lr=0.1, warmup=0), ["OneBitAdam", "warmup=0"]),
    "half a step": (lambda: algorithms.QAdam(lr=0.1, warmup=1.5), ["QAdam", "whole number"]),
    "beta": (lambda: algorithms.QAdam(lr=0.1, beta2=1.0), ["QAdam", "beta2=1.0"]),
    "rank": (lambda: algorithms.PowerGossip(lr=0.1, rank=0), ["rank"]),
    "step size": (lambda: algorithms.CHOCO(lr=-0.1), ["CHOCO", "lr=-0.1"]),
    "step size False": (lambda: algorithms.CHOCO(lr=False), ["CHOCO", "lr is False"]),
    "contraction": (lambda: algorithms.choco_gamma(topology.ring(4), 0.0), ["contraction=0.0"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_parameters_are_named(case):
    make, parts = REFUSED[case]
    with pytest.raises((ArgumentError, ArgumentTypeError)) as caught:
        make()
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (topology.directed_ring(5), "W must be symmetric"),
        (topology.from_matrix(np.eye(2)[::-1]), "W does not average"),
    ],
)
def test_the_gamma_of_the_theorem_is_for_weights_of_the_theorem(graph, reason):
    with pytest.raises(TopologyError, match=f"choco_gamma of .*: {reason}"):
        algorithms.choco_gamma(graph, 0.5)


def test_the_gamma_of_the_theorem_is_for_a_topology():
    with pytest.raises(ArgumentTypeError, match="topology must be a Topology, got str"):
        algorithms.choco_gamma("ring", 0.5)


def test_compressors_may_be_given_by_name():
    one = algorithms.get("choco", lr=0.02, gamma=0.3, compressor="topk:2")
    assert one == algorithms.CHOCO(lr=0.02, gamma=0.3, compressor=compression.TopK(2))
    assert one.parameters() == {"lr": 0.02, "gamma": 0.3, "compressor": "topk:2"}
    assert algorithms.CHOCO(lr=0, compressor="sign").compressor == compression.ScaledSign()


def test_a_compressor_may_depend_on_the_step():
    """Deep gradient compression begins with denser messages."""
    problem = problems.Quadratic.random(4, 10, kappa=4.0, heterogeneity=1.0, seed=0)

    def sparser(k):
        return compression.TopK(8 if k < 3 else 1)

    algorithm = algorithms.DGC(lr=0.02, compressor=sparser)
    history = dectool.solve(algorithm, problem, topology=topology.ring(4), steps=5)
    per_payload = np.diff(history["bytes"]) / (4 * 3)
    sizes = [compression.TopK(k).wire_bytes(10, "float64") for k in (8, 8, 8, 1, 1)]
    assert per_payload.tolist() == sizes


@pytest.mark.parametrize("name", ["CHOCO", "DCD", "ECD", "LEAD", "CEDAS", "BEER", "PowerGossip"])
def test_replicas_need_a_fixed_symmetric_topology(name):
    problem = problems.Averaging(np.eye(8))
    algorithm = algorithms.get(name, lr=0.1)
    with pytest.raises(TopologyError, match=f"{name} on .* must be symmetric"):
        dectool.solve(algorithm, problem, topology=topology.exponential(8), steps=1)
    with pytest.raises(TopologyError, match=f"{name} needs a fixed topology"):
        dectool.solve(algorithm, problem, topology=topology.one_peer_exponential(8), steps=1)


def test_blocks_of_unknown_size_are_refused():
    problem = problems.Averaging(np.eye(4))
    algorithm = algorithms.OneBitAdam(lr=0.1, warmup=1, compressor="threshold:0.1")
    with pytest.raises(ArgumentError, match="fixed size"):
        dectool.solve(algorithm, problem, topology=topology.ring(4), steps=2)


def test_histories_go_on_after_a_round_trip(tmp_path):
    problem = problems.Quadratic.random(4, 6, kappa=4.0, heterogeneity=1.0, seed=0)
    algorithm = algorithms.LEAD(lr=0.05)
    ring = topology.ring(4)
    half = dectool.solve(algorithm, problem, topology=ring, steps=6)
    loaded = dectool.History.load(half.save(tmp_path / "half.npz"))
    rest = dectool.solve(algorithm, problem, topology=ring, steps=9, resume=loaded)
    whole = dectool.solve(algorithm, problem, topology=ring, steps=9)
    assert rest.x.tobytes() == whole.x.tobytes()
    assert loaded.about["parameters"]["compressor"] == "qsgd"
