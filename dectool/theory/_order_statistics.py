"""Expected extremes of independent compute times: what it costs to wait for the slowest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.theory._arguments import whole

# Φ(-37.5) is the smallest tail of the normal law that is a normal float64.
_REACH = 37.5
_HALVINGS = 12


def expected_maximum(compute: Any, n: int) -> float:
    r"""Return the expected time until all of n independent computations are done.

    It is the cycle time of a synchronous step: n ranks compute, then meet at a barrier or an
    all-reduce. With mean 1/μ, exponential times give :math:`H_n / \mu = (1 + 1/2 + ... + 1/n)/\mu`.

    Args:
        compute: A compute model of ``dectool.sim`` that has a ``distribution()``, or a frozen
            distribution of ``scipy.stats`` with a finite mean, in seconds.
        n: Number of ranks, at least 1.

    Returns:
        Seconds; see :func:`expected_order_statistic` for the formulas.

    Example:
        >>> from dectool import sim
        >>> expected_maximum(sim.Exponential(mean=1.0), 4)  # 25/12
        2.0833333333333
    """
    return expected_order_statistic(compute, n, n)


def expected_order_statistic(compute: Any, n: int, k: int) -> float:
    r"""Return the expected time until k of n independent computations are done.

    So long takes a synchronous step with n - k backup workers, whose work is dropped.

    .. math::
        \text{exponential, shift } \Delta &: \Delta + (H_n - H_{n-k}) / \mu \\
        \text{uniform on } [a, b] &: a + (b - a)\, k / (n + 1) \\
        \text{Pareto, minimum } m, \text{ shape } a &:
            m\, \frac{\Gamma(n + 1)}{\Gamma(n + 1 - 1/a)}
            \frac{\Gamma(n - k + 1 - 1/a)}{\Gamma(n - k + 1)}

    All other laws, with quantile function Q, by the trapezoidal rule on
    :math:`\int Q(\Phi(z))\, \beta_k(\Phi(z))\, \varphi(z)\, dz`, where Φ and φ are of the standard
    normal law and :math:`\beta_k` is the density of Beta(k, n - k + 1). The Weibull law has an
    alternating sum, which loses all digits beyond n = 50, and takes this way too.

    Args:
        compute: As for :func:`expected_maximum`.
        n: Number of computations, at least 1.
        k: How many must be done, from 1 to n.

    Returns:
        Seconds; to 12 digits for laws with a smooth quantile function.

    Raises:
        ArgumentError: n or k is out of range, or the mean is infinite or cannot be had.
        ArgumentTypeError: ``compute`` is no distribution.

    Example:
        >>> from dectool import sim
        >>> expected_order_statistic(sim.Exponential(mean=1.0), n=10, k=9)
        1.9289682539683

    References:
        H. A. David, H. N. Nagaraja, Order Statistics, 3rd edition, Wiley, 2003.
        J. Chen et al., Revisiting distributed synchronous SGD, 2016 (backup workers).
    """
    n = whole("n", n, 1)
    k = whole("k", k, 1)
    if k > n:
        raise ArgumentError(f"k={k} of n={n} computations: k must be at most n")
    law = _distribution(compute)
    closed = _closed_form(law, n, k)
    return _expectation(law, n, k, lambda x: x) if closed is None else closed


def variance_of_maximum(compute: Any, n: int) -> float:
    r"""Return the variance of the time until all of n independent computations are done.

    .. math:: \text{exponential}: \frac{1}{\mu^2} \sum_{k=1}^n \frac{1}{k^2}

    Other laws by quadrature, as in :func:`expected_order_statistic`.

    Args:
        compute: As for :func:`expected_maximum`, with a finite variance.
        n: Number of ranks, at least 1.

    Returns:
        Seconds squared.

    Raises:
        ArgumentError: n is below 1, or the variance is infinite or cannot be had.

    Example:
        >>> from dectool import sim
        >>> variance_of_maximum(sim.Exponential(mean=1.0), 4)  # 205/144
        1.4236111111111
    """
    n = whole("n", n, 1)
    law = _distribution(compute)
    if law.dist.name == "expon":
        return _parameters(law)["scale"] ** 2 * float(
            special.polygamma(1, 1) - special.polygamma(1, n + 1)
        )
    if not math.isfinite(law.var()):
        raise ArgumentError(f"{_name(law)} has no finite variance, so neither has its maximum")
    mean = expected_order_statistic(law, n, n)
    return _expectation(law, n, n, lambda x: (x - mean) ** 2)


def _distribution(compute: Any) -> Any:
    method = getattr(compute, "distribution", None)
    law = method() if callable(method) else compute
    if not all(hasattr(law, name) for name in ("dist", "args", "kwds", "isf")):
        raise ArgumentTypeError(
            f"{compute!r} is no distribution of times; give a compute model of dectool.sim such "
            "as Exponential(1.0), or a frozen one of scipy.stats such as gamma(2.0)"
        )
    if not math.isfinite(law.mean()):
        raise ArgumentError(f"{_name(law)} has no finite mean, so neither has its maximum")
    return law


def _parameters(law: Any) -> dict[str, float]:
    names = [*(law.dist.shapes or "").replace(",", " ").split(), "loc", "scale"]
    given = {"loc": 0.0, "scale": 1.0} | dict(zip(names, law.args, strict=False)) | law.kwds
    return {name: float(given[name]) for name in names}


def _name(law: Any) -> str:
    values = ", ".join(f"{name}={value:g}" for name, value in _parameters(law).items())
    return f"{law.dist.name}({values})"


def _closed_form(law: Any, n: int, k: int) -> float | None:
    given = _parameters(law)
    loc, scale = given["loc"], given["scale"]
    if law.dist.name == "expon":
        return loc + scale * float(special.digamma(n + 1) - special.digamma(n - k + 1))
    if law.dist.name == "uniform":
        return loc + scale * k / (n + 1)
    if law.dist.name == "pareto":
        a = 1.0 / given["b"]
        ratio = special.poch(n + 1 - a, a) / special.poch(n - k + 1 - a, a)
        return loc + scale * float(ratio)
    return None


def _expectation(law: Any, n: int, k: int, function: Any) -> float:
    """Return the expectation of a function of the k-th smallest of n."""
    shift = special.gammaln(n + 1) - special.gammaln(k) - special.gammaln(n - k + 1)

    def terms(z: Any) -> Any:
        """Return the density at z, but for a factor, and the function times the density."""
        tail = special.ndtr(-np.abs(z))
        x = np.where(z > 0.0, law.isf(tail), law.ppf(tail))
        log = (k - 1) * special.log_ndtr(z) + (n - k) * special.log_ndtr(-z)
        density = np.exp(shift + log - z * z / 2)
        return np.stack([density, function(x) * density])

    step = 0.25
    values = terms(np.arange(-_REACH, _REACH + step / 2, step))
    mass, total = values.sum(axis=1)
    size = float(np.abs(values[1]).sum())
    for _ in range(_HALVINGS):
        last, step = total / mass, step / 2
        between = terms(np.arange(-_REACH + step, _REACH, 2 * step))
        mass, total = np.array([mass, total]) + between.sum(axis=1)
        size += float(np.abs(between[1]).sum())
        if step < 0.05 and abs(total / mass - last) <= 1e-14 * size / mass:
            break
    ends = float(np.abs(values[1, [0, -1]]).sum())
    if not (np.isfinite(total) and ends <= 1e-13 * size * step):
        raise ArgumentError(
            f"the tail of {_name(law)} is too heavy for quadrature; simulate instead, or use the "
            "closed form of a Pareto law"
        )
    return float(total / mass)
