"""What ranks that send anything they like can do to the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dectool.algorithms import ATC, Algorithm, ClippedGossipSGD
from dectool.communicator import Communicator
from dectool.errors import ArgumentError
from dectool.problems import Quadratic
from dectool.run import run
from dectool.theory._arguments import Floats, whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory.claims._given import checked_rate
from dectool.topology import complete

_FAR = 1e9


def clipping_bounds_byzantine_ranks(
    honest: int = 12,
    byzantine: Sequence[int] = (1, 2, 3, 4, 5),
    *,
    lr: float = 0.5,
    heterogeneity: float = 1.0,
    steps: int = 80,
) -> Evidence:
    r"""Check how far Byzantine ranks move descent with :class:`dectool.algorithms.ClippedGossip`.

    All ranks are neighbours of all. Of n, the honest ones have curvature 1, half of them with
    gradients :math:`\zeta` in one direction at the optimum, half in the opposite one; the others,
    of total weight δ, always send the same point, very far away in another direction. With the
    radius :math:`\tau^2 = \frac1\delta \sum_j W_{ij} \|x_i - x_j\|^2` over honest ranks, the mean
    of the honest ranks ends where its gradient is

    .. math:: \|\nabla f(\bar x)\| = \frac{\delta \tau}{\alpha}
       = \frac{\sqrt{2 \delta (1 - \delta)}}{1 - \delta (1 - \alpha)} \, \zeta

    which grows as √δ ζ, however far they point. Without clipping it is as large as they like, and
    without Byzantine ranks an infinite radius is plain adapt-then-combine.

    Args:
        honest: Number of honest ranks, even.
        byzantine: Numbers of Byzantine ranks, each less than half of the honest ones.
        lr: Step size α, below 1.
        heterogeneity: ζ, the norm of the honest ranks' gradients at their optimum.
        steps: Steps of each run.

    Raises:
        ArgumentError: An argument breaks its rule.

    Example:
        >>> bool(clipping_bounds_byzantine_ranks().verdict)
        True

    References:
        L. He, S. P. Karimireddy & M. Jaggi, Byzantine-robust decentralized learning via
        ClippedGossip, arXiv:2202.01545.
    """
    if whole("honest", honest, 2) % 2:
        raise ArgumentError(f"honest={honest} must be even: half of them pull in each direction")
    counts = [whole("byzantine", count, 1) for count in byzantine]
    if not counts or max(counts) * 2 >= honest:
        raise ArgumentError(
            f"byzantine={tuple(byzantine)} must be one or more numbers below half of honest="
            f"{honest}: with more, honest ranks are clipped as well"
        )
    a, zeta = checked_rate("lr", lr, 1.0), checked_rate("heterogeneity", heterogeneity)
    steps = whole("steps", steps, 1)
    shares = np.array([count / (honest + count) for count in counts])
    spread = a * zeta / (1.0 - shares * (1.0 - a))
    radii = np.sqrt(2.0 * (1.0 - shares) / shares) * spread
    floors = shares * radii / a
    found = np.array(
        [
            _floor(ClippedGossipSGD(lr=a, radius=float(tau)), honest, count, zeta, steps)
            for count, tau in zip(counts, radii, strict=True)
        ]
    )
    checks = [
        Check.equal(
            f"{count} of {honest + count} Byzantine: gradient at the end",
            float(gradient),
            float(floor),
            tolerance=1e-6,
        )
        for count, gradient, floor in zip(counts, found, floors, strict=True)
    ]
    twice = _floor(
        ClippedGossipSGD(lr=a, radius=2.0 * float(radii[0])), honest, counts[0], 2.0 * zeta, steps
    )
    checks.append(
        Check.equal(
            "twice the heterogeneity: ratio of gradients",
            twice / float(found[0]),
            2.0,
            tolerance=1e-6,
        )
    )
    roots = np.sqrt(2.0 * shares) * zeta
    checks.append(
        Check.at_most(
            "gradient over sqrt(2 delta) zeta (largest)",
            float((found / roots).max()),
            float(np.max(1.0 / (1.0 - shares))),
        )
    )
    infinite = ClippedGossipSGD(lr=a, radius=float("inf"))
    checks.append(
        Check.at_least(
            "without clipping: gradient at the end (with clipping: one million times less)",
            _floor(infinite, honest, counts[0], zeta, steps),
            1e6 * float(found[0]),
        )
    )
    plain, same = (_iterates(algorithm, honest, 0, zeta, steps) for algorithm in (ATC(a), infinite))
    checks.append(
        Check.equal(
            "infinite radius, all honest: distance from adapt-then-combine",
            float(np.abs(plain - same).max()),
            0.0,
            tolerance=1e-13,
            scale=a * zeta,
        )
    )
    return Evidence(
        "clipping keeps what Byzantine ranks do to the gradient to the order of sqrt(delta) zeta "
        "(He, Karimireddy & Jaggi 2022)",
        tuple(checks),
        (Curve("ClippedGossip", shares, found, floors),),
        x="weight of Byzantine ranks",
        y="gradient at the end",
        scale="loglog",
    )


def _floor(
    algorithm: Algorithm, honest: int, byzantine: int, heterogeneity: float, steps: int
) -> float:
    """Return the gradient of the honest ranks' objective at their mean after a run."""
    X = _iterates(algorithm, honest, byzantine, heterogeneity, steps)
    return float(np.linalg.norm(X[:honest].mean(axis=0)))


def _iterates(
    algorithm: Algorithm, honest: int, byzantine: int, heterogeneity: float, steps: int
) -> Floats:
    """Return the last iterates where ranks from ``honest`` on send a point very far away.

    A Byzantine rank is one whose iterate an adversary sets before every step, and that has no
    gradient: what it sends is what was set.
    """
    n = honest + byzantine
    sides = np.where(np.arange(n) < honest, (-1.0) ** np.arange(n), 0.0)
    b = np.stack([heterogeneity * sides, np.zeros(n)], axis=1)
    problem = Quadratic(h=np.ones((n, 2)), b=b)
    far = np.array([0.0, _FAR])
    liars = np.arange(n)[:, None] >= honest

    def gradient(comm: Communicator) -> Any:
        return lambda x: np.where(liars[comm.rank], 0.0, problem.grad(x, comm.rank))

    def program(comm: Communicator) -> Any:
        lies, grad = liars[comm.rank], gradient(comm)
        state = algorithm.init(comm, np.zeros((n, 2))[comm.rank], grad)
        for k in range(steps):
            state = state.replace(x=np.where(lies, far, state.x))
            state = algorithm.at(k).step(comm, state, grad)
        return state.x

    return np.array(run(program, n, backend="stacked", topology=complete(n)).values)
