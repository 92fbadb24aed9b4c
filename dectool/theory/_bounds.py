"""Guarantees of the literature, held against a problem and a topology."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dectool.algorithms import (
    ATC,
    CTA,
    D2,
    DGD,
    EXTRA,
    LEAD,
    NIDS,
    PGEXTRA,
    SSDA,
    Algorithm,
    AllReduceGD,
    ATCGradientTracking,
    ChebyshevGossip,
    CHOCOGossip,
    DIGing,
    ExactDiffusion,
    Gossip,
    PushSum,
    SemiATCGradientTracking,
    ShiftRegisterGossip,
)
from dectool.errors import ArgumentError
from dectool.problems import Problem
from dectool.theory._arguments import need_algorithm, need_problem
from dectool.theory._bound import Bound
from dectool.theory._bounds_averaging import (
    of_chebyshev,
    of_gossip,
    of_push_sum,
    of_shift_register,
)
from dectool.theory._bounds_compressed import of_choco, of_lead
from dectool.theory._bounds_descent import of_allreduce, of_dgd, of_diffusion
from dectool.theory._bounds_exact import of_d2, of_extra, of_nids, of_ssda
from dectool.theory._bounds_tracking import of_tracking
from dectool.theory._facts import Facts
from dectool.topology import Schedule, Topology, as_schedule

_Maker = Callable[[Facts], Iterator[Bound]]

_MAKERS: dict[type[Algorithm], _Maker] = {
    Gossip: of_gossip,
    ChebyshevGossip: of_chebyshev,
    ShiftRegisterGossip: of_shift_register,
    PushSum: of_push_sum,
    CHOCOGossip: of_choco,
    LEAD: of_lead,
    AllReduceGD: of_allreduce,
    DGD: of_dgd,
    ATC: of_diffusion,
    CTA: of_diffusion,
    EXTRA: of_extra,
    PGEXTRA: of_extra,
    NIDS: of_nids,
    ExactDiffusion: of_nids,
    D2: of_d2,
    SSDA: of_ssda,
    DIGing: of_tracking,
    SemiATCGradientTracking: of_tracking,
    ATCGradientTracking: of_tracking,
}
_VARYING = {Gossip, DIGing, AllReduceGD}


def bounds(
    algorithm: Algorithm, problem: Problem, topology: Topology | Schedule
) -> tuple[Bound, ...]:
    r"""Return what the literature guarantees of an algorithm, with all conditions checked.

    Largest step sizes, contractions per step, and distances from the optimum: worst cases over
    all problems and topologies with the same few constants, so a run is mostly far better.
    :func:`dectool.theory.rate` and :func:`dectool.theory.largest_stable_lr` say what this problem
    does on this topology.

    Args:
        algorithm: What runs.
        problem: n local functions; theorems see its ``L``, ``L_max``, ``mu`` and ``mu_min``.
        topology: A topology, or a periodic schedule. Of theorems on fixed topologies there is none
            for a schedule.

    Returns:
        One bound for each guarantee, whether its conditions are met or not; see
        :attr:`Bound.applies`. None for algorithms, schedules and problems (those with a term that
        has corners) of which no theorem with explicit constants is known here.

    Raises:
        ArgumentError: Problem and topology have different sizes.
        ArgumentTypeError: The algorithm or the problem is none.

    Example:
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0], [4.0]], b=[[0.0], [1.0], [2.0], [3.0]])
        >>> first, *_ = bounds(algorithms.EXTRA(lr=0.1), q, topology.ring(4))
        >>> first
        <Bound on the step size of EXTRA: 0.166666667>
        >>> print(first)
        with lr < 2 lambda_min((I + W)/2) / L_max = 0.166666667 it converges to an optimum (W. Shi,
        Q. Ling, G. Wu & W. Yin, SIAM J. Optim. 25(2), 2015, Theorem 3.3)
        ok   W symmetric: it is
        ok   rows and columns of W sum to 1: it is
        ok   lambda_2 < 1: lambda_2 = 0.333333
        ok   lambda_min > -1: lambda_min = -0.333333
        ok   every f_i convex: mu_min = 1

    References:
        With each bound. Numbers of theorems are given where the text of the theorem was at hand;
        the others' formulas were held against random problems.
    """
    need_algorithm(algorithm)
    need_problem(problem)
    schedule = as_schedule(topology)
    if schedule.size != problem.size:
        raise ArgumentError(
            f"topology is a {schedule.name} with {schedule.size} ranks, but the problem has "
            f"{problem.size}; build both for the same number"
        )
    kind = type(algorithm)
    maker = _MAKERS.get(kind)
    if maker is None or schedule.period is None or problem.regularizer is not None:
        return ()
    if schedule.period > 1 and kind not in _VARYING:
        return ()
    return tuple(maker(Facts(algorithm, problem, schedule)))
