"""How long decentralized noise stays above that of the mean gradient."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dectool.algorithms import Algorithm, AllReduceGD
from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.problems import Problem, Quadratic
from dectool.theory._arguments import Floats, need_algorithm, need_problem, real, whole
from dectool.theory._fixed_point import end_of
from dectool.theory._iteration import linearize
from dectool.theory._noise import DivergesError, Spread, spread_of
from dectool.theory._probe import WARM
from dectool.topology import Schedule, Topology


def mean_square_error(
    algorithm: Algorithm,
    problem: Problem,
    topology: Topology | Schedule,
    steps: int,
    *,
    noise: Any = 1.0,
    x0: Any = None,
) -> float:
    r"""Return the expected squared distance from the optimum after some noisy steps.

    .. math:: \frac1n \sum_i \mathrm{E} \|x_i^k - x^*\|^2, \qquad
       s_k - s_\infty = M^k (s_0 - s_\infty), \qquad
       \Sigma_k = \Sigma_\infty - M^k \Sigma_\infty {M^k}^\top

    from the mean and the covariance of :math:`s^+ = M s + c + \sum_j G_j \xi_j`; see
    :func:`dectool.theory.steady_state`. Only the first two periods are taken to be free of noise,
    since the map is read off behind them; and where weights or counts settle first, as those of
    push-sum, all steps until they have.

    Args:
        algorithm: As for :func:`dectool.theory.iteration`.
        problem: n local functions of d variables; others than quadratics are replaced by their
            :func:`dectool.theory.linearize`.
        topology: A topology, or a periodic schedule; then ``steps`` is rounded down to periods.
        steps: k, at least 0.
        noise: As for :func:`dectool.theory.steady_state`.
        x0: Starting points, as for :func:`dectool.solve`; default: those of the problem.

    Raises:
        ArgumentError: As for :func:`dectool.theory.steady_state`; or ``steps`` is negative, or
            no more than weights or counts take to settle.

    Example:
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [1.0]], b=[[0.0], [2.0]])
        >>> round(mean_square_error(algorithms.ATC(lr=0.5), q, topology.complete(2), 100), 9)
        0.166666667
    """
    k = whole("steps", steps, 0)
    spread = spread_of(algorithm, problem, topology, noise, x0)
    return _error_after(spread, algorithm, problem, k)


def transient_time(
    algorithm: Algorithm,
    problem: Problem,
    topology: Topology | Schedule,
    *,
    noise: Any = 1.0,
    lr: Callable[[int], float] | None = None,
    factor: float = 2.0,
    x0: Any = None,
    most: int = 2**30,
) -> float:
    r"""Return from how many steps on an algorithm is as good as all-reduce, but for a factor.

    That is the horizon from which the :func:`mean_square_error` after T steps with the step size
    :math:`\alpha(T)` is at most ``factor`` times that of stochastic gradient descent on the mean
    gradient (:class:`dectool.algorithms.AllReduceGD`), also after T such steps: the onset of
    linear speed-up.

    .. math:: \mathrm{E} \|x_i^T - x^*\|^2 \le 2\, \mathrm{E} \|x_\mathrm{mean}^T - x^*\|^2, \qquad
       \alpha(T) = \min(\tfrac12, \sqrt{n / T}) / L_{\max}

    Horizons that are powers of two are tried, from the largest down to the first that fails, and
    what lies between is bisected.

    Args:
        algorithm: With a hyper-parameter ``lr``, whose value does not matter.
        problem: As for :func:`mean_square_error`.
        topology: As there.
        noise: As there.
        lr: :math:`\alpha` as a function of the horizon T; default: as above.
        factor: How much worse may be, above 1.
        x0: As there.
        most: The largest horizon that is tried.

    Returns:
        The number of steps, or infinity if the largest horizon fails too.

    Raises:
        ArgumentError: The algorithm has no ``lr``, ``factor`` or ``most`` is out of range, or as
            for :func:`mean_square_error`; but a step size that does not converge only fails.
        ArgumentTypeError: ``lr`` is no function.

    Example:
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0]] * 8, b=[[0.0]] * 8)
        >>> [transient_time(algorithms.ATC(lr=0.1), q, graph(8), most=2**20)
        ...  for graph in (topology.complete, topology.exponential, topology.ring)]
        [1, 1, 161]

    References:
        K. Yuan, S. A. Alghunaim & X. Huang, Removing data heterogeneity influence enhances network
        topology dependence of decentralized SGD, JMLR 24, 2023, arXiv:2105.08023.
    """
    need_algorithm(algorithm)
    need_problem(problem)
    if not any(field.name == "lr" for field in dataclasses.fields(algorithm)):
        raise ArgumentError(f"{algorithm.name} has no step size lr, which a horizon would set")
    factor = real("factor", factor)
    if not factor > 1.0:
        raise ArgumentError(f"factor={factor} must be above 1: nothing beats the mean gradient")
    most = whole("most", most, 1)
    target = problem if isinstance(problem, Quadratic) else linearize(problem)
    start = problem.initial(problem.ranks).reshape(problem.size, -1) if x0 is None else x0
    step = _default_lr(target) if lr is None else lr
    if not callable(step):
        raise ArgumentTypeError(
            f"lr is {step!r}; give a function of the horizon, such as lambda T: T ** -0.5"
        )
    changed: Any = dataclasses.replace

    def fails(horizon: int) -> bool:
        alpha = float(step(horizon))
        found = []
        for one in (changed(algorithm, lr=alpha), AllReduceGD(lr=alpha)):
            try:
                spread = spread_of(one, target, topology, noise, start)
            except DivergesError:
                return True
            found.append(_error_after(spread, one, target, horizon))
        return not found[0] <= factor * found[1]

    if fails(most):
        return math.inf
    low = high = most
    while low > 1:
        low //= 2
        if fails(low):
            break
        high = low
    else:
        return 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    return high


def _default_lr(problem: Problem) -> Callable[[int], float]:
    return lambda horizon: min(0.5, math.sqrt(problem.size / horizon)) / problem.L_max


def _error_after(spread: Spread, algorithm: Algorithm, problem: Problem, steps: int) -> float:
    """Return the expected squared distance of a rank after some steps."""
    found, iteration = spread.found, spread.iteration
    done = len(found.first) - 1
    optimum = problem.optimum.reshape(-1)
    if 0 < steps <= done and done > WARM * iteration.period:
        raise ArgumentError(
            f"{algorithm.name} has weights that settle in the first {done} steps, whose noise is "
            f"not known, and steps={steps} are no more; take more, or sample runs"
        )
    if steps < done:
        return float(np.sum((found.first[steps] - optimum) ** 2)) / problem.size
    limit = end_of(algorithm, problem, found, iteration)
    power: Floats = np.linalg.matrix_power(spread.core, (steps - done) // iteration.period)
    moved = power @ (spread.basis.T @ (found.warm - iteration.pack(limit.state)))
    mean = limit.x.reshape(problem.size, -1) + (spread.to_x @ moved).reshape(problem.size, -1)
    covariance = spread.covariance - power @ spread.covariance @ power.T
    noisy = float(np.sum((spread.to_x @ covariance) * spread.to_x))
    return (float(np.sum((mean - optimum) ** 2)) + noisy) / problem.size
