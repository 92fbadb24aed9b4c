"""Predictions: what theory says an algorithm will do on a problem and a topology.

How far a step contracts: :func:`iteration` and :func:`rate`. Where the iterates end
(:func:`fixed_point`), with which steps they end at all (:func:`largest_stable_lr`), and how far
noise keeps them away (:func:`steady_state` in the long run, :func:`mean_square_error` after some
steps, :func:`transient_time` compared with an all-reduce). :func:`predict` puts these together, and
:func:`compare` holds a history against them. What theorems guarantee: :func:`bounds`.

What it costs on a network: :func:`seconds_per_round` of gossip, :func:`cost_to_accuracy`.

How long a step takes where compute times are uneven: waiting for all (:func:`expected_maximum`),
for the neighbors (:func:`cycle_time` with constant times, :func:`exponential_cycle_time` with
random ones), or for nobody (:func:`asynchronous_throughput`).

Published statements, each a function that measures and predicts: :mod:`dectool.theory.claims`.
"""

from dectool.theory import claims as claims
from dectool.theory._bound import Assumption as Assumption, Bound as Bound
from dectool.theory._bounds import bounds as bounds
from dectool.theory._compare import (
    Agreement as Agreement,
    compare as compare,
)
from dectool.theory._cost import Cost as Cost, cost_to_accuracy as cost_to_accuracy
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
from dectool.theory._round_time import seconds_per_round as seconds_per_round
from dectool.theory._stability import largest_stable_lr as largest_stable_lr
from dectool.theory._stragglers import (
    asynchronous_speedup as asynchronous_speedup,
    asynchronous_throughput as asynchronous_throughput,
    local_sgd_round_time as local_sgd_round_time,
    synchronous_throughput as synchronous_throughput,
)
from dectool.theory._transient import (
    mean_square_error as mean_square_error,
    transient_time as transient_time,
)

__all__ = [
    "Agreement",
    "Assumption",
    "Bound",
    "Check",
    "Cost",
    "Curve",
    "Evidence",
    "FixedPoint",
    "Iteration",
    "Prediction",
    "SteadyState",
    "Verdict",
    "asynchronous_speedup",
    "asynchronous_throughput",
    "bounds",
    "claims",
    "compare",
    "cost_to_accuracy",
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
    "mean_square_error",
    "predict",
    "rate",
    "seconds_per_round",
    "steady_state",
    "synchronous_throughput",
    "transient_time",
    "variance_of_maximum",
]
