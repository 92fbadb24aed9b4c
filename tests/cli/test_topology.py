"""``dectool topology``: the numbers of the table, pictures, wrong names."""

import math

import numpy as np
import pytest

from dectool import topology
from dectool.cli.topology import measure

MAKERS = {
    "ring": topology.ring(16),
    "path": topology.path(16),
    "star best": topology.star(16, weights="best_constant"),
    "exponential 12": topology.exponential(12),
    "exponential 7": topology.exponential(7),
    "complete": topology.complete(5),
    "one rank": topology.ring(1),
    "regular": topology.random_regular(12, 3),
}


def powers(W, k):
    return np.linalg.norm(np.linalg.matrix_power(W, k) - 1.0 / len(W), 2)


@pytest.mark.parametrize("name", MAKERS)
def test_rounds_are_the_fewest(name):
    graph = MAKERS[name]
    rounds = measure(graph, 10).rounds
    W = graph.to_dense()
    assert powers(W, int(rounds)) <= 1e-6 * (1 + 1e-9)
    if rounds > 1:
        assert powers(W, int(rounds) - 1) > 1e-6


def test_rounds_of_schedules():
    assert measure(topology.one_peer_exponential(16), 1).rounds == 4
    assert measure(topology.one_peer_exponential(16), 1).rho == pytest.approx(0.0, abs=1e-6)
    schedule = topology.one_peer_exponential(12)
    row = measure(schedule, 1)
    assert schedule.contraction(0, int(row.rounds)) <= 1e-6
    assert schedule.contraction(0, int(row.rounds) - 1) > 1e-6
    assert row.rho == pytest.approx(schedule.contraction() ** (1 / 4))
    matching = topology.random_matching(topology.ring(8), seed=1)
    assert matching.contraction(0, int(measure(matching, 1).rounds)) <= 1e-6


def test_what_never_averages():
    ring = topology.ring(8, weights="metropolis_hastings_boyd")
    assert measure(ring, 1).rounds == math.inf
    assert math.isnan(measure(topology.star(8, weights="uniform"), 1).rounds)


def test_edges_and_bytes():
    row = measure(topology.exponential(16), 250)
    assert (row.edges, row.degree, row.bytes) == (64, 4, 64 * 250 * 8)
    row = measure(topology.ring(16), 250)
    assert (row.edges, row.degree, row.bytes) == (16, 2, 32 * 250 * 8)
    assert row.lambda_min == pytest.approx(-1 / 3)
    assert (row.rho, row.gap) == (topology.ring(16).rho, topology.ring(16).spectral_gap)


def test_default_table(cli):
    result = cli("topology")
    assert result.exit_code == 0, result.output
    for name in ("ring of 16", "4 x 4 torus", "hypercube of 16", "one-peer exponential"):
        assert name in result.stdout
    assert "0.949253" in result.stdout


def test_default_table_says_what_it_left_out(cli):
    result = cli("topology -n 12 --weights lazy")
    assert result.exit_code == 0, result.output
    assert "no hypercube: a hypercube has 2^d ranks, but n=12" in result.stdout
    assert "no exponential: weights='lazy' needs an undirected graph" in result.stdout


def test_named_ones_in_their_order(cli):
    out = cli("topology torus:2x4 ring star:weights=uniform -n 8 -d 10").stdout
    assert out.index("2 x 4 torus") < out.index("ring of 8") < out.index("star of 8")
    assert "never: no mean" in out


@pytest.mark.parametrize("names", ["", "ring", "one_peer_exponential random_regular:3"])
def test_picture(cli, tmp_path, names):
    target = tmp_path / "graphs.png"
    result = cli(f"topology {names} -n 8 --plot", target)
    assert result.exit_code == 0, result.output
    assert target.read_bytes()[:4] == b"\x89PNG"
    assert [path.name for path in tmp_path.iterdir()] == ["graphs.png"]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("topology rign", ["topology 'rign' is unknown", "did you mean 'ring'"]),
        ("topology hypercube -n 12", ["but n=12; use 8 or 16"]),
        ("topology torus:4x4 -n 12", ["has 16 ranks, but n=12"]),
        ("topology -n 0", ["got 0"]),
        ("topology ring -n -3", ["got -3"]),
        ("topology ring --weights lzay", ["weights='lzay' is unknown", "did you mean 'lazy'"]),
        ("topology ring -d -1", ["--numbers -1 must be at least 0"]),
        ("topology ring --plot no/such/folder/x.png", ["no/such/folder"]),
        ("topology ring --plot out.xyz", ["--plot out.xyz", "png"]),
    ],
)
def test_refused(refused, line, parts):
    text = refused(line)
    for part in parts:
        assert part in text
