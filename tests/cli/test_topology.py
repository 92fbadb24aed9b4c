"""``dectool topology``: the numbers of the table, files, pictures, what is refused."""

import csv
import json
import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from dectool import sim, theory, topology
from dectool.cli import _measures, _output, _topology_picture as picture
from dectool.cli._measures import measure
from dectool.errors import ArgumentError

MAKERS = {
    "ring": topology.ring(16),
    "path": topology.path(16),
    "star best": topology.star(16, weights="best_constant"),
    "exponential 12": topology.exponential(12),
    "exponential 7": topology.exponential(7),
    "de Bruijn": topology.de_bruijn(16, 2),
    "sinkhorn": topology.random_digraph(9, 0.3, seed=1, weights="sinkhorn"),
    "complete": topology.complete(5),
    "one rank": topology.ring(1),
    "regular": topology.random_regular(12, 3),
}
SCHEDULES = {
    "one peer": topology.one_peer_exponential(16),
    "one peer 12": topology.one_peer_exponential(12),
    "base 3": topology.base_k(15, 2),
    "laplacian": topology.laplacian_sequence(topology.torus(4, 4)),
    "alternating": topology.alternating_ring(16),
    "shift one": topology.shift_one(10),
}
NETWORK = "alphabeta:latency=1e-4,bandwidth=1e8"


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


@pytest.mark.parametrize("accuracy", [1e-6, 0.3])
@pytest.mark.parametrize("name", SCHEDULES)
def test_rounds_of_schedules(name, accuracy):
    schedule = SCHEDULES[name]
    row = measure(schedule, 1, accuracy)
    assert schedule.contraction(0, int(row.rounds)) <= accuracy
    assert schedule.contraction(0, int(row.rounds) - 1) > accuracy
    period = schedule.contraction() ** (1 / schedule.period)
    assert row.rho == pytest.approx(0.0 if name in ("one peer", "base 3", "laplacian") else period)


def test_many_ranks_are_measured_as_few(monkeypatch):
    schedules = SCHEDULES["one peer 12"], SCHEDULES["alternating"]
    expected = [measure(schedule, 1).rounds for schedule in schedules]
    monkeypatch.setattr(_measures, "_DENSE", 4)
    assert [measure(schedule, 1).rounds for schedule in schedules] == expected
    monkeypatch.setattr(_measures, "_MOST_ROUNDS", 64)
    beyond = measure(topology.alternating_ring(16), 1).rounds
    assert beyond == pytest.approx(expected[1], rel=0.03)


def test_a_schedule_is_measured_over_its_period():
    schedule = topology.base_k(15, 2)
    members = [schedule.at(k) for k in range(schedule.period)]
    edges = [np.count_nonzero(np.triu(m.to_dense(), 1)) for m in members]
    most = [
        np.count_nonzero(m.to_dense() - np.diag(np.diag(m.to_dense())), 0).max() for m in members
    ]
    assert len(set(edges)) > 1
    assert len(set(most)) > 1
    row = measure(schedule, numbers=10)
    assert row.edges == pytest.approx(np.mean(edges))
    assert row.bytes_per_round == pytest.approx(2 * np.mean(edges) * 80)
    assert row.bytes_per_rank == pytest.approx(np.mean(most) * 80)
    assert (row.degree, row.sampled) == (2, 0)
    later = topology.periodic([topology.one_peer_exponential(8).at(0), topology.star(8)])
    assert measure(later, 1).degree == 7


def test_a_random_schedule_is_measured_in_mean_square():
    # E|We|^2 = (n-1)/(2n) |e|^2 for every e.
    row = measure(topology.equidyn(16, directed=True), 10)
    assert (row.sampled, row.factor, row.degree) == (512, "exact", 1)
    assert row.rho == pytest.approx(math.sqrt(15 / 32))
    assert row.rounds == math.ceil(math.log(1e-6) / math.log(math.sqrt(15 / 32)))


def test_many_random_ranks_have_a_bound(monkeypatch, cli):
    pairs = topology.random_pair(topology.ring(8))
    exact = measure(pairs, 10)

    def too_many(schedule):
        raise ArgumentError("too many")

    monkeypatch.setattr(_measures, "mean_square_rate", too_many)
    row = measure(pairs, 10)
    # The second eigenvalue of the mean matrix of a random pair.
    assert row.rho == pytest.approx(math.sqrt(1 - (1 - math.cos(math.pi / 4)) / 8))
    assert row.factor == "bound"
    assert row.rounds > exact.rounds
    out = cli(f"topology random_pair:ring -n 8 --network {NETWORK}").stdout
    (line,) = (line for line in out.splitlines() if "random pair" in line)
    assert (line.count("≤"), line.count("≥"), line.count("~")) == (3, 1, 4)


def lawless(schedule):
    return topology.Schedule(schedule.at, size=schedule.size, period=None, name="who knows")


def test_a_schedule_without_a_law_is_a_sample():
    schedule = lawless(topology.random_matching(topology.complete(8), seed=1))
    row = measure(schedule, 10)
    assert (row.sampled, row.factor) == (512, "sample")
    lengths, start = [], 0
    while start < 512:
        length = 1
        while schedule.contraction(start, length) > 1e-6:
            length += 1
        lengths.append(length)
        start += length
    assert row.rounds == pytest.approx(np.mean(lengths))
    assert row.rho == pytest.approx(1e-6 ** (1 / np.mean(lengths)))
    used = [schedule.at(k).edges.receivers.size for k in range(512)]
    assert row.bytes_per_round == pytest.approx(np.mean(used) * 80)


def test_a_sample_of_equal_steps_is_exact(monkeypatch):
    ring = topology.ring(16)
    schedule = lawless(topology.static(ring))
    row, exact = measure(schedule, 1), measure(ring, 1)
    assert row.rounds == exact.rounds
    assert row.rho == pytest.approx(exact.rho, rel=2e-4)
    monkeypatch.setattr(_measures, "_MOST_ROUNDS", 100)
    assert measure(schedule, 1).rounds == pytest.approx(math.log(1e-6) / math.log(ring.rho))


def test_what_never_averages():
    ring = topology.ring(8, weights="metropolis_hastings_boyd")
    assert measure(ring, 1).rounds == math.inf
    W = np.kron(np.eye(2), np.full((2, 2), 0.5))
    pairs = topology.from_matrix(W, require_connected=False)
    assert measure(lawless(topology.static(pairs)), 1).rounds == math.inf
    assert measure(topology.random_choice([pairs, pairs]), 1).rounds == math.inf
    assert measure(topology.periodic([pairs, pairs]), 1).rounds == math.inf
    assert math.isnan(measure(topology.star(8, weights="uniform"), 1).rounds)


def test_edges_and_bytes():
    row = measure(topology.exponential(16), 250)
    assert (row.edges, row.degree, row.bytes_per_round) == (64, 4, 64 * 250 * 8)
    row = measure(topology.ring(16), 250)
    assert (row.edges, row.degree, row.bytes_per_round) == (16, 2, 32 * 250 * 8)
    assert row.lambda_min == pytest.approx(-1 / 3)
    assert (row.rho, row.gap) == (topology.ring(16).rho, topology.ring(16).spectral_gap)
    star = measure(topology.star(16), 250)
    assert (star.bytes_per_rank, star.bytes_per_round) == (15 * 2000, 30 * 2000)


def test_default_table(cli):
    result = cli("topology")
    assert result.exit_code == 0, result.output
    for name in ("ring of 16", "4 x 4 torus", "hypercube of 16", "one-peer exponential"):
        assert name in result.stdout
    assert "0.949253" in result.stdout
    assert "seconds" not in result.stdout


def test_default_table_says_what_it_left_out(cli):
    result = cli("topology -n 12 --weights lazy")
    assert result.exit_code == 0, result.output
    out = " ".join(result.stdout.split())
    assert "no hypercube: a hypercube has 2^d ranks, but n=12" in out
    assert "no exponential: weights='lazy' needs an undirected graph" in out


def test_named_ones_in_their_order(cli):
    out = cli("topology torus:2x4 ring star:weights=uniform -n 8 -d 10").stdout
    assert out.index("2 x 4 torus") < out.index("ring of 8") < out.index("star of 8")
    assert "no mean: W does not keep the mean" in out


def rows_of(cli, tmp_path, words, status=0):
    result = cli(f"topology {words} --table", tmp_path / "table.json")
    assert result.exit_code == status, result.output
    return json.loads((tmp_path / "table.json").read_text())


def test_each_topology_with_each_weights(cli, tmp_path):
    words = (
        "ring star:weights=uniform one_peer_exponential exponential random_pair:ring path -n 8 "
        "--weights lazy --weights best_constant --weights sinkhorn --weights lazy"
    )
    rows = rows_of(cli, tmp_path, words)
    assert [(row["topology"].split(" of ")[0], row["weights"]) for row in rows] == [
        ("ring", "lazy"),
        ("ring", "best_constant"),
        ("ring", "sinkhorn"),
        ("star", "uniform"),
        ("one-peer exponential graph", "half"),
        ("exponential graph", "sinkhorn"),
        ("random pair", "half"),
        ("path", "lazy"),
        ("path", "best_constant"),
        ("path", "sinkhorn"),
    ]
    best = topology.ring(8, weights="best_constant")
    assert rows[1]["rho"] == best.rho
    out = " ".join(cli(f"topology {words}").stdout.split())
    assert "no exponential with best_constant: weights='best_constant' needs an undirected" in out


def test_seconds_on_a_network(cli, tmp_path):
    words = f"ring star one_peer_exponential complete -n 8 -d 125000 --network {NETWORK}"
    rows = rows_of(cli, tmp_path, words)
    # 1 MB take 0.01 s; messages of a rank go one after the other. In the long run the center of
    # the star waits for the last leaf, and that for the last message of the center: 7 ms + 1.
    for row, messages in zip(rows, (2, None, 1, 7), strict=True):
        if messages is not None:
            assert row["seconds_per_round"] == pytest.approx(1e-4 + messages * 0.01)
        assert row["seconds"] == pytest.approx(row["rounds"] * row["seconds_per_round"])
        assert (row["network"], row["numbers"], row["accuracy"]) == (NETWORK, 125000, 1e-6)
    model = sim.AlphaBeta(latency=1e-4, bandwidth=1e8)
    expected = theory.seconds_per_round(topology.star(8), model, 1_000_000)
    assert rows[1]["seconds_per_round"] == expected
    assert "0.0201" in cli(f"topology {words}").stdout


def test_the_accuracy_is_chosen(cli, tmp_path):
    rows = rows_of(cli, tmp_path, "ring complete -n 8 --to 1e-2")
    assert [row["rounds"] for row in rows] == [math.ceil(math.log(1e-2, topology.ring(8).rho)), 1]


@pytest.mark.parametrize(
    ("column", "order"),
    [
        ("gap", "one-peer torus star ring bare"),
        ("rounds", "one-peer torus star ring bare"),
        ("bytes-per-rank", "one-peer ring torus bare star"),
        ("seconds", "one-peer torus ring star bare"),
        ("topology", "torus one-peer ring bare star"),
    ],
)
def test_sorted(cli, tmp_path, column, order):
    words = (
        "star:weights=uniform ring torus star one_peer_exponential -n 16 --network "
        f"{NETWORK} --sort {column}"
    )
    rows = rows_of(cli, tmp_path, words)
    names = ["bare" if row["weights"] == "uniform" else row["topology"] for row in rows]
    first = [name.removeprefix("4 x 4 ").split(" ")[0] for name in names]
    assert first == order.split()


def test_table_in_a_file(cli, tmp_path):
    words = "ring:weights=metropolis_hastings_boyd exponential star:weights=uniform -n 8 --table"
    for suffix in ("csv", "json", "md"):
        result = cli(f"topology {words}", tmp_path / f"table.{suffix}")
        assert result.exit_code == 0, result.output
        assert f"table.{suffix}" in "".join(result.stdout.split())
    with (tmp_path / "table.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    records = json.loads((tmp_path / "table.json").read_text())
    exact = measure(topology.exponential(8), 1000)
    assert list(table[0]) == list(records[0]) == [*exact._fields, "numbers", "accuracy", "network"]
    for name, value in exact._asdict().items():
        known = isinstance(value, str) or math.isfinite(value)
        assert records[1][name] == (value if known else None)
        assert table[1][name] == (str(value) if known else "")
    assert [row["rounds"] for row in table] == ["inf", "20", ""]
    assert [row["rounds"] for row in records] == [None, 20, None]
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert lines[0].startswith("| topology | weights | ranks |")
    assert lines[1].startswith("| --- | --- | ---: |")
    assert len({line.count("|") for line in lines}) == 1
    assert len(lines) == 5


@pytest.mark.parametrize("names", ["", "ring", "one_peer_exponential random_regular:3"])
def test_picture(cli, tmp_path, names):
    target = tmp_path / "graphs.png"
    result = cli(f"topology {names} -n 8 --plot", target)
    assert result.exit_code == 0, result.output
    assert target.read_bytes()[:4] == b"\x89PNG"
    assert [path.name for path in tmp_path.iterdir()] == ["graphs.png"]


def drawn(graphs, seconds=math.nan):
    rows = [measure(graph, 10) for graph in graphs]
    rows = [r._replace(seconds_per_round=seconds, seconds=seconds * r.rounds) for r in rows]
    figure = Figure(layout="constrained")
    picture.draw(list(zip(graphs, rows, strict=True)), figure, 1e-6)
    return figure.axes, rows


def points(axes):
    found = [line.get_xydata()[0] for line in axes.lines if len(line.get_xdata()) == 1]
    return np.array(found).reshape(-1, 2)


def test_what_a_picture_shows():
    flat = topology.ring(8, weights="metropolis_hastings_boyd")
    graphs = [topology.ring(8), topology.one_peer_exponential(8), flat, topology.ring(8).lazy()]
    (totals, costs, *panels), rows = drawn(graphs)
    there = [rows[0], rows[1], rows[3]]
    np.testing.assert_allclose(
        points(totals),
        [(r.rounds * r.bytes_per_rank, k) for r, k in zip(there, (0, 1, 3), strict=True)],
    )
    np.testing.assert_allclose(points(costs), [(r.rounds, r.bytes_per_rank) for r in there])
    labels = [label.get_text() for label in totals.get_yticklabels()]
    assert labels == [
        "ring of 8, metropolis_hastings",
        "one-peer exponential graph of 8",
        "ring of 8, metropolis_hastings_boyd",
        "lazy ring of 8",
    ]
    assert "never" in [text.get_text() for text in totals.texts]
    assert totals.get_xlabel() == "bytes of the busiest rank to 1e-06"
    for line in costs.lines:
        if len(line.get_xdata()) == 2:
            products = line.get_xdata() * line.get_ydata()
            assert products[0] == pytest.approx(products[1])
    titles = [panel.get_title().split("\n") for panel in panels[:2]]
    assert titles[0] == ["ring of 8", "metropolis_hastings, spectral gap 0.1953"]
    assert titles[1] == ["one-peer exponential graph of 8", "all 3 steps"]


def test_a_picture_of_seconds():
    (totals, costs, *_), rows = drawn([topology.ring(8), topology.complete(8)], seconds=0.5)
    np.testing.assert_allclose(points(totals)[:, 0], [row.rounds * 0.5 for row in rows])
    assert totals.get_xlabel() == "seconds to 1e-06"
    assert costs.get_ylabel() == "seconds in a round"


def test_a_picture_of_what_never_averages():
    (totals, costs, *_), _ = drawn([topology.ring(8, weights="metropolis_hastings_boyd")])
    assert len(points(totals)) == len(points(costs)) == 0
    assert [text.get_text() for text in totals.texts] == ["never"]


def test_a_picture_of_what_keeps_no_mean():
    (totals, *_), _ = drawn([topology.star(8, weights="uniform"), topology.ring(8)])
    assert totals.texts[0].get_text() == "no mean"


def test_a_sample_is_marked(cli):
    words = "topology random_matching:ring ring b_connected:ring,window=2 -n 8"
    lines = cli(words).stdout.splitlines()
    known, fixed, sampled = (line for line in lines if "ring of 8" in line)
    assert (known.count("~"), fixed.count("~"), sampled.count("~")) == (3, 0, 6)
    assert "~: measured on the first 512 rounds" in lines
    assert "random rounds shrink disagreement in mean square" in lines


@pytest.mark.parametrize(
    ("width", "there", "missing"),
    [
        (160, ["edges", "rho", "lambda", "degree", "gap", "rank", "seconds"], []),
        (100, ["degree", "gap", "rank", "seconds"], ["edges", "lambda", "rho"]),
        (80, ["gap", "rank", "rounds", "seconds"], ["edges", "lambda", "rho", "degree"]),
    ],
)
def test_a_narrow_terminal(cli, monkeypatch, width, there, missing):
    monkeypatch.setattr(_output, "_PIPED_WIDTH", width)
    out = cli(f"topology ring one_peer_exponential -n 8 --network {NETWORK}").stdout
    lines = out.splitlines()
    assert max(map(len, lines[1:])) <= width
    head = "".join(lines[: next(i for i, line in enumerate(lines) if "ring" in line)])
    assert all(word in head for word in there)
    assert not any(word in head for word in missing)
    assert "0.195262" in out


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("topology rign", ["topology 'rign' is unknown", "did you mean 'ring'"]),
        ("topology hypercube -n 12", ["but n=12; use 8 or 16"]),
        ("topology torus:4x4 -n 12", ["has 16 ranks, but n=12"]),
        ("topology -n 0", ["got 0"]),
        ("topology ring -n -3", ["got -3"]),
        ("topology ring --weights lzay", ["weights='lzay' is unknown", "did you mean 'lazy'"]),
        ("topology ring --weights lazy --weights unifrom", ["'unifrom'", "'uniform'"]),
        ("topology rign ring --weights lazy --weights uniform", ["'rign' is unknown"]),
        ("topology exponential --weights lazy", ["weights='lazy' needs an undirected graph"]),
        (
            "topology exponential ring -n 8 --weights lazy --weights best_constant",
            ["weights='lazy' needs an undirected graph"],
        ),
        ("topology --weights lzay", ["weights='lzay' is unknown"]),
        (
            "topology base_k random_pair:ring --weights lazy",
            ["--weights lazy would change nothing", "base_k, random_pair:ring would keep"],
        ),
        ("topology ring -d -1", ["--numbers -1 must be at least 0"]),
        ("topology ring -d 0 --network alphabeta", ["--numbers 0", "at least 1"]),
        ("topology ring --network etherent", ["network 'etherent' is unknown"]),
        ("topology ring --to 0", ["--to 0 must be above 0 and below 1"]),
        ("topology ring --to nan", ["--to nan must be above 0 and below 1"]),
        ("topology ring --sort gpa", ["--sort 'gpa' is unknown", "'gap'"]),
        ("topology ring --sort seconds", ["--sort seconds needs --network"]),
        ("topology ring --table no/such/folder/x.csv", ["no/such/folder", "--table"]),
        ("topology ring --table table.xlsx", ["--table table.xlsx", ".csv, .json, .md"]),
        ("topology ring --plot no/such/folder/x.png", ["no/such/folder"]),
        ("topology ring --plot out.xyz", ["--plot out.xyz", "png"]),
    ],
)
def test_refused(refused, line, parts):
    text = refused(line)
    for part in parts:
        assert part in text
