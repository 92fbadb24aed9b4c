"""Predictions: what theory says an algorithm will do on a problem and a topology.

How far a step contracts: :func:`iteration` and :func:`rate`. Where the iterates end
(:func:`fixed_point`), with which steps they end at all (:func:`largest_stable_lr`), and how far
noise keeps them away (:func:`steady_state`). :func:`predict` puts these together, and
:func:`compare` holds a history against them.

How long a step takes where compute times are uneven: waiting for all (:func:`expected_maximum`),
for the neighbors (:func:`cycle_time` with constant times, :func:`exponential_cycle_time` with
random ones), or for nobody (:func:`asynchronous_throughput`).

Published statements, each a function that measures and predicts: :mod:`dectool.theory.claims`.
"""

from dectool.theory import claims as claims
from dectool.theory._compare import (
    Agreement as Agreement,
    compare as compare,
)
from dectool.theory._cycle_times import (
    critical_circuit as critical_circuit,
    cycle_time as cycle_time,
)
from dectool.theory._evidence import (
    Check as Check,
    Curve as Curve,
    Evidence as Evidence,
    Verdict as Verdict,
)
from dectool.theory._fixed_point import FixedPoint as FixedPoint, fixed_point as fixed_point
from dectool.theory._iteration import (
    Iteration as Iteration,
    iteration as iteration,
    iteration_matrix as iteration_matrix,
    linearize as linearize,
    rate as rate,
)
from dectool.theory._jump_chain import exponential_cycle_time as exponential_cycle_time
from dectool.theory._noise import SteadyState as SteadyState, steady_state as steady_state
from dectool.theory._order_statistics import (
    expected_maximum as expected_maximum,
    expected_order_statistic as expected_order_statistic,
    variance_of_maximum as variance_of_maximum,
)
from dectool.theory._predict import Prediction as Prediction, predict as predict
from dectool.theory._stability import largest_stable_lr as largest_stable_lr
from dectool.theory._stragglers import (
    asynchronous_speedup as asynchronous_speedup,
    asynchronous_throughput as asynchronous_throughput,
    local_sgd_round_time as local_sgd_round_time,
    synchronous_throughput as synchronous_throughput,
)

__all__ = [
    "Agreement",
    "Check",
    "Curve",
    "Evidence",
    "FixedPoint",
    "Iteration",
    "Prediction",
    "SteadyState",
    "Verdict",
    "asynchronous_speedup",
    "asynchronous_throughput",
    "claims",
    "compare",
    "critical_circuit",
    "cycle_time",
    "expected_maximum",
    "expected_order_statistic",
    "exponential_cycle_time",
    "fixed_point",
    "iteration",
    "iteration_matrix",
    "largest_stable_lr",
    "linearize",
    "local_sgd_round_time",
    "predict",
    "rate",
    "steady_state",
    "synchronous_throughput",
    "variance_of_maximum",
]
