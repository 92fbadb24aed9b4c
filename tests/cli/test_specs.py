"""The text forms: what they stand for, and what is said about wrong ones."""

import numpy as np
import pytest

from dectool import sim, topology
from dectool.cli import _specs as specs
from dectool.errors import ArgumentError, DectoolError
from dectool.problems import partition

GRAPHS = {
    "ring": topology.ring(16),
    "path": topology.path(16),
    "star": topology.star(16),
    "complete": topology.complete(16),
    "grid": topology.grid(4, 4),
    "grid:2x8": topology.grid(2, 8),
    "torus": topology.torus(4, 4),
    "torus:sides=2x8": topology.torus(2, 8),
    "hypercube": topology.hypercube(4),
    "hypercube:4": topology.hypercube(4),
    "exponential": topology.exponential(16),
    "exponential:weights=uniform_push": topology.exponential(16, weights="uniform_push"),
    "random_regular:4": topology.random_regular(16, 4),
    "random_regular:4,seed=3": topology.random_regular(16, 4, seed=3),
    "erdos_renyi:0.3": topology.erdos_renyi(16, 0.3),
    "erdos_renyi:p=0.3,seed=1": topology.erdos_renyi(16, 0.3, seed=1),
    "geometric:0.5": topology.geometric(16, 0.5),
    "Ring:weights=lazy": topology.ring(16, weights="lazy"),
}
SCHEDULES = {
    "one_peer_exponential": topology.one_peer_exponential(16),
    "one-peer-exponential": topology.one_peer_exponential(16),
    "one_peer_exponential:symmetric=true": topology.one_peer_exponential(16, symmetric=True),
    "random_matching:ring,seed=2": topology.random_matching(topology.ring(16), seed=2),
    "random_matching:torus:4x4": topology.random_matching(topology.torus(4, 4)),
}


@pytest.mark.parametrize("text", GRAPHS)
def test_topology(text):
    made = specs.topology(text, 16)
    assert made.name == GRAPHS[text].name
    assert (made.W != GRAPHS[text].W).nnz == 0


@pytest.mark.parametrize("text", SCHEDULES)
def test_schedule(text):
    made = specs.topology(text, 16)
    assert made.name == SCHEDULES[text].name
    for k in range(5):
        assert (made.at(k).W != SCHEDULES[text].at(k).W).nnz == 0


def test_every_example_is_right():
    tables = (specs._NETWORKS, specs._COMPUTES, specs._PARTITIONS)
    readers = (specs.network, specs.compute, lambda text: specs.partition(text, seed=0))
    for table, read in zip(tables, readers, strict=True):
        for form in table.values():
            assert read(form.example) is not None
    for name, form in specs.TOPOLOGIES.items():
        assert specs.topology(form.example, None).size == (13 if name == "paley" else 16)


def test_size_comes_from_n_then_the_text_then_the_default():
    assert specs.topology("ring", 5).size == 5
    assert specs.topology("torus:3x4", None).size == 12
    assert specs.topology("ring", None, default=7).size == 7
    assert specs.topology("grid", 12).name == "3 x 4 grid"
    assert specs.topology("grid", 7).name == "1 x 7 grid"


def test_weights_of_the_text_go_before_those_of_the_option():
    assert specs.topology("ring", 8, weights="lazy").weights == "lazy"
    assert specs.topology("ring:weights=max_degree", 8, weights="lazy").weights == "max_degree"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("rign", ["topology 'rign' is unknown", "did you mean 'ring'"]),
        ("zzz", ["unknown", "known: alternating_ring, b_connected"]),
        ("", ["topology '' is unknown", "known: alternating_ring"]),
        ("torus:4y4", ["'torus:4y4'", "must be ROWSxCOLUMNS", "(example: torus:4x4)"]),
        ("torus:3x3", ["'torus:3x3' has 9 ranks, but n=16"]),
        ("hypercube:3", ["has 8 ranks, but n=16"]),
        ("ring:5", ["'5' is one value too many"]),
        ("ring:sides=2x2", ["there is no 'sides'", "known: weights"]),
        ("ring:weights=lzay", ["weights='lzay' is unknown", "did you mean 'lazy'"]),
        ("exponential:weights=lazy", ["needs an undirected graph"]),
        ("random_regular", ["it needs degree", "(example: random_regular:4,seed=1)"]),
        ("random_regular:many", ["'many' is not a whole number"]),
        ("random_regular:4,degree=3", ["degree is given twice"]),
        ("random_regular:4,1,9", ["'9' is one value too many"]),
        ("random_regular:1", ["degree=1 cannot connect"]),
        ("erdos_renyi:2", ["p must be a probability", "got 2"]),
        ("one_peer_exponential:weights=lazy", ["there is no 'weights'", "symmetric"]),
        ("random_pair:ring,weights=lazy", ["there is no 'weights'", "seed"]),
        ("one_peer_exponential:symmetric=perhaps", ["'perhaps' must be true or false"]),
        ("random_matching", ["it needs graph"]),
        ("random_matching:exponential", ["needs an undirected graph"]),
        ("random_matching:one_peer_exponential", ["needs a fixed graph"]),
        ("named:zzz", ["named graph 'zzz' is unknown", "petersen"]),
        ("matcha:ring", ["it needs budget"]),
        ("matcha:ring,budget=2", ["budget must be above 0 and at most 1, got 2"]),
        ("inner_outer_ring:8x2", ["3 devices or more, got 8 x 2"]),
    ],
)
def test_wrong_topology(text, parts):
    with pytest.raises(DectoolError) as caught:
        specs.topology(text, 16)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("text", ["one_peer_exponential", "base_k:2", "random_pair:ring"])
def test_weights_that_would_change_nothing(text):
    """A schedule that nobody weighs; what is made of a graph may be one."""
    with pytest.raises(ArgumentError, match=r"has weights of its own, so weights='lazy' would"):
        specs.topology(text, 16, weights="lazy")
    assert specs.topology("b_connected:ring,window=2", 16, weights="lazy").at(0).weights == "lazy"


def test_hypercube_needs_a_power_of_two():
    with pytest.raises(ArgumentError, match="but n=12; use 8 or 16"):
        specs.topology("hypercube", 12)


def test_networks():
    assert specs.network(None) is None
    made = specs.network("alphabeta:1e-5,bandwidth=1.25e9")
    assert (made.latency, made.bandwidth, made.port) == (1e-5, 1.25e9, "serial")
    assert specs.network("alphabeta").is_ideal
    assert specs.network("AlphaBeta:port=parallel").port == "parallel"
    made = specs.network("ethernet:25,latency=2e-5")
    assert (made.latency, made.bandwidth, made.port) == (2e-5, 25e9 / 8, "serial")
    made = specs.network("loggp:L=1e-5,o=1e-6,g=0,G=1e-9")
    assert (made.L, made.o, made.g, made.G) == (1e-5, 1e-6, 0.0, 1e-9)


def test_computes():
    assert specs.compute(None) is None
    assert repr(specs.compute("constant:1e-3")) == repr(sim.Constant(1e-3))
    assert repr(specs.compute("exponential:mean=2")) == repr(sim.Exponential(2.0))
    made = specs.compute("per_rank:3=10,1=2,base=shifted_exponential:shift=1,mean=0.5")
    expected = sim.PerRank({3: 10.0, 1: 2.0}, sim.ShiftedExponential(1.0, 0.5))
    assert repr(made) == repr(expected)
    rng = np.random.default_rng(0)
    assert specs.compute("per_rank:3=10").draw(rng, 4).tolist() == [1.0, 1.0, 1.0, 10.0]


@pytest.mark.parametrize(
    ("read", "text", "parts"),
    [
        (specs.network, "alphabet", ["network 'alphabet' is unknown", "'alphabeta'"]),
        (specs.network, "alphabeta:lat=1", ["there is no 'lat'", "did you mean 'latency'"]),
        (specs.network, "alphabeta:fast", ["'fast' is not a number"]),
        (specs.network, "alphabeta:bandwidth=-1", ["bandwidth=-1.0", "above 0 bytes per second"]),
        (specs.network, "alphabeta:latency=nan", ["latency=nan", "at least 0 seconds"]),
        (specs.network, "alphabeta:port=both", ["port='both'", "'serial' or 'parallel'"]),
        (specs.network, "ethernet", ["it needs gigabits", "(example: ethernet:10"]),
        (specs.network, "ethernet:0", ["gigabits=0.0 must be above 0"]),
        (specs.network, "loggp", ["it needs L", "(example: loggp:L=1e-5"]),
        (specs.network, "loggp:L=-1", ["LogGP: L=-1.0"]),
        (specs.compute, "expnential:1", ["unknown", "did you mean 'exponential'"]),
        (specs.compute, "exponential", ["it needs mean"]),
        (specs.compute, "exponential:mean=-1", ["mean=-1.0", "at least 0"]),
        (specs.compute, "pareto:minimum=1,shape=1", ["shape=1.0 must be above 1"]),
        (specs.compute, "per_rank:a=3", ["'a' is not a whole number", "(example: per_rank:3=10"]),
        (specs.compute, "per_rank", ["'' is not a whole number"]),
        (specs.compute, "per_rank:3=10,base=fast", ["compute 'fast' is unknown"]),
        (specs.compute, "per_rank:3=10,1=2,3=5", ["rank 3 is given twice", "(example: per_rank"]),
    ],
)
def test_wrong_models(read, text, parts):
    with pytest.raises(ArgumentError) as caught:
        read(text)
    for part in parts:
        assert part in str(caught.value)


def test_partitions():
    assert specs.partition("contiguous", 1) == partition.Contiguous()
    assert specs.partition("shuffled", 5) == partition.Shuffled(seed=5)
    assert specs.partition("shuffled:2", 5) == partition.Shuffled(seed=2)
    assert specs.partition("by_class:2", 1) == partition.ByClass(2)
    cut = specs.partition("dirichlet:0.1,allow_empty=true", 4)
    assert cut == partition.Dirichlet(alpha=0.1, seed=4, allow_empty=True)
    with pytest.raises(ArgumentError, match="alpha"):
        specs.partition("dirichlet:-1", 0)
    with pytest.raises(ArgumentError, match="did you mean 'dirichlet'"):
        specs.partition("dirichle", 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", 3), ("-2", -2), ("1e-3", 1e-3), ("true", True), ("ring", "ring"), ("1,2.5", (1, 2.5))],
)
def test_value(text, expected):
    assert specs.value(text) == expected
    assert type(specs.value(text)) is type(expected)


@pytest.mark.parametrize("text", ["gap", "=3", "gap=", ""])
def test_assignment_must_be_name_and_value(text):
    with pytest.raises(ArgumentError, match=r"--stop '.*' must be NAME=VALUE"):
        specs.assignments("--stop", [text], specs.real)


def test_an_assignment_is_made_once():
    with pytest.raises(ArgumentError, match=r"--stop 'gap=2': gap is given twice"):
        specs.assignments("--stop", ["gap=1", "distance=1", "gap=2"], specs.real)
