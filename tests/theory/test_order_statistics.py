"""Order statistics: quadrature against closed forms, identities, and laws without a mean."""

import numpy as np
import pytest
from scipy import stats

from dectool import sim, theory
from dectool.errors import ArgumentError
from dectool.theory import _order_statistics


@pytest.mark.parametrize("n_k", [(1, 1), (4, 4), (100, 37), (10**6, 10**6), (10**6, 999_995)])
@pytest.mark.parametrize(
    "law",
    [stats.expon(1.0, 2.0), stats.uniform(1.0, 2.0), stats.pareto(1.5), stats.pareto(b=1.1)],
    ids=lambda law: law.dist.name,
)
def test_quadrature_gives_the_closed_forms(law, n_k):
    closed = theory.expected_order_statistic(law, *n_k)
    by_quadrature = _order_statistics._expectation(law, *n_k, lambda x: x)
    assert by_quadrature == pytest.approx(closed, rel=2e-13)


@pytest.mark.parametrize("law", [stats.gamma(2.0), stats.lognorm(0.5), stats.norm(5.0)])
def test_order_statistics_sum_to_the_sample(law):
    every = [theory.expected_order_statistic(law, 7, k) for k in range(1, 8)]
    assert np.all(np.diff(every) > 0.0)
    assert sum(every) == pytest.approx(7 * law.mean(), rel=1e-13)


@pytest.mark.parametrize("law", [stats.expon(), stats.gamma(3.0), stats.lognorm(0.5)])
def test_variance_of_one_is_that_of_the_law(law):
    assert theory.variance_of_maximum(law, 1) == pytest.approx(law.var(), rel=1e-12)


def test_variance_of_exponential_by_quadrature():
    # The shape 1 makes gamma the exponential law without its closed form.
    found = theory.variance_of_maximum(stats.gamma(1.0, scale=2.0), 8)
    assert found == pytest.approx(theory.variance_of_maximum(sim.Exponential(2.0), 8), rel=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        sim.Exponential(2.0),
        sim.ShiftedExponential(1.0, 0.5),
        sim.LogNormal(2.0, 0.5),
        sim.Pareto(1.5, 3.0),
    ],
    ids=repr,
)
def test_models_draw_from_their_distribution(model):
    drawn = model.draw(np.random.default_rng(0), 20_000)
    assert stats.kstest(drawn, model.distribution().cdf).pvalue > 1e-3


def test_a_kink_in_the_quantiles():
    # Of two symmetric triangular times on [0, 1]: 1/2 + 7/60.
    assert theory.expected_maximum(stats.triang(0.5), 2) == pytest.approx(0.5 + 7 / 60, abs=1e-9)


def test_laws_without_moments():
    with pytest.raises(ArgumentError, match=r"pareto\(b=1, .*no finite mean"):
        theory.expected_maximum(stats.pareto(1.0), 4)
    with pytest.raises(ArgumentError, match="no finite variance"):
        theory.variance_of_maximum(stats.pareto(2.0), 4)
    with pytest.raises(ArgumentError, match="too heavy for quadrature"):
        theory.expected_maximum(stats.lomax(1.01), 4)
