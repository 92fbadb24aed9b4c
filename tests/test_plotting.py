"""Pictures: what is drawn, on axes of one's own too. No window is opened."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import dectool
from dectool import algorithms, problems, topology
from dectool.errors import ArgumentError, MissingDependencyError
from dectool.plotting import draw_topology

mpl.use("Agg")


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(autouse=True)
def _closed():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def history():
    problem = problems.Quadratic.random(8, 2, seed=1)
    return dectool.solve(
        algorithms.EXTRA(lr=0.05),
        problem,
        topology=topology.ring(8),
        steps=40,
        compute=dectool.sim.Exponential(1e-3),
    )


@pytest.fixture(scope="module")
def sweep():
    return dectool.compare(
        {"DGD": algorithms.DGD(lr=0.05), "D2": algorithms.D2(lr=0.05)},
        lambda seed: problems.Quadratic.random(8, 2, seed=seed),
        topologies={"ring": topology.ring(8), "lazy": topology.ring(8).lazy()},
        networks={"ideal": None, "slow": dectool.sim.AlphaBeta(1e-3)},
        seeds=range(3),
        steps=20,
        processes=1,
    )


def test_history(history):
    axes = history.plot()
    (line,) = axes.lines
    assert line.get_xdata().tolist() == history["step"].tolist()
    assert line.get_ydata().tolist() == history["gap"].tolist()
    assert axes.get_yscale() == "log"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("step", r"$f(\bar x) - f(x^*)$")
    assert axes.get_legend().get_texts()[0].get_text() == "EXTRA, ring of 8"
    axes.figure.canvas.draw()


@pytest.mark.parametrize("x", ["step", "time", "bytes", "messages"])
def test_history_over(history, ax, x):
    assert history.plot("distance", x, ax=ax) is ax
    assert ax.lines[0].get_xdata().tolist() == history[x].tolist()


def test_line_is_passed_on(history, ax):
    history.plot(ax=ax, color="red", label="mine", linewidth=3)
    assert ax.lines[0].get_color() == "red"
    assert ax.lines[0].get_label() == "mine"


def test_what_has_no_logarithm_is_left_out(history, ax):
    history.plot("consensus_error", ax=ax)
    assert ax.lines[0].get_xdata()[0] == 1
    history.plot("change", ax=ax)
    assert np.isfinite(ax.lines[1].get_ydata()).all()


def test_unknown_column(history, ax):
    for names in (("gpa",), ("gap", "tiem")):
        with pytest.raises(ArgumentError, match=r"no column '.*'; did you mean"):
            history.plot(*names, ax=ax)


@pytest.mark.parametrize(
    "graph",
    [
        topology.ring(8),
        topology.exponential(8),
        topology.ring(1),
        topology.star(8, weights="best_constant"),
        topology.one_peer_exponential(8).at(1),
        topology.ring(100),
    ],
    ids=lambda graph: graph.name,
)
def test_topology(graph, ax):
    assert draw_topology(graph, ax=ax) is ax
    ax.figure.canvas.draw()
    assert graph.name in ax.get_title()
    assert f"{graph.spectral_gap:.4g}" in ax.get_title()
    assert len(ax.texts) == (graph.size if graph.size <= 64 else 0)


@pytest.mark.parametrize(
    ("schedule", "edges", "text"),
    [
        (topology.one_peer_exponential(8, symmetric=True), 12, "all 3 steps"),
        (topology.random_matching(topology.ring(8), seed=1), 8, "the first 64 steps"),
    ],
)
def test_all_steps_of_a_schedule(schedule, edges, text, ax):
    draw_topology(schedule, ax=ax)
    assert ax.get_title() == f"{schedule.name}\n{text}"
    (lines,) = (found for found in ax.collections if hasattr(found, "get_segments"))
    assert len(lines.get_segments()) == edges
    if schedule.period:
        # Each of the 12 edges has weight 1/2 in one of 3 steps.
        np.testing.assert_allclose(lines.get_linewidths(), 4.0 / 6 + 0.3)


def test_topology_on_new_axes():
    assert draw_topology(topology.ring(4)).get_title().startswith("ring of 4")


def test_comparison(sweep, ax):
    assert sweep.plot(ax=ax) is ax
    labels = [line.get_label() for line in ax.lines]
    # D2 is refused on the ring.
    assert labels == [
        "DGD, ring, ideal",
        "DGD, ring, slow",
        "DGD, lazy, ideal",
        "DGD, lazy, slow",
        "D2, lazy, ideal",
        "D2, lazy, slow",
    ]
    assert len(ax.collections) == 6
    runs = sweep.select(algorithm="DGD", topology="ring", network="ideal")
    gaps = np.array([run.records["gap"] for run in runs])
    expected = np.exp(np.log(gaps).mean(axis=0))
    np.testing.assert_allclose(ax.lines[0].get_ydata(), expected)
    ax.figure.canvas.draw()


def test_styles_of_a_comparison(sweep, ax):
    sweep.plot(ax=ax)
    by_label = {line.get_label(): line for line in ax.lines}
    ring, lazy = by_label["DGD, ring, ideal"], by_label["DGD, lazy, ideal"]
    slow, other = by_label["DGD, ring, slow"], by_label["D2, lazy, ideal"]
    assert to_rgba(ring.get_color()) == to_rgba(slow.get_color())
    assert to_rgba(ring.get_color()) != to_rgba(other.get_color())
    assert lazy.get_linestyle() == other.get_linestyle() != ring.get_linestyle()
    assert slow.get_marker() != ring.get_marker()


def test_comparison_over_time(sweep, ax):
    runs = sweep.select(algorithm="DGD", topology="ring", network="slow")
    runs.plot("distance", "time", ax=ax)
    np.testing.assert_allclose(ax.lines[0].get_xdata()[-1], 20 * 1e-3)
    assert ax.lines[0].get_label() == "DGD, ring"
    assert ax.get_xlabel() == "time [s]"


def test_comparison_of_one_seed_has_no_band(sweep, ax):
    sweep.select(seed=0).plot(ax=ax, linewidth=1)
    assert len(ax.collections) == 0


def test_comparison_of_refused_runs_only(sweep, ax):
    sweep.select(status="refused").plot(ax=ax)
    assert len(ax.lines) == 0
    assert ax.get_legend() is None


def test_comparison_of_an_unknown_column(sweep, ax):
    for names in (("gpa",), ("gap", "tiem")):
        with pytest.raises(ArgumentError, match=r"no column '.*'; did you mean"):
            sweep.plot(*names, ax=ax)


def test_without_matplotlib(history, sweep, monkeypatch):
    import importlib

    def without(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", without)
    for draw in (history.plot, sweep.plot, lambda: draw_topology(topology.ring(4))):
        with pytest.raises(MissingDependencyError, match=r"pip install 'dectool\[plot\]'"):
            draw()
