"""Predictions: what theory says an algorithm will do on a problem and a topology.

How far a step contracts: :func:`iteration` and :func:`rate`. How long a step takes where compute
times are uneven: waiting for all (:func:`expected_maximum`), for the neighbors (:func:`cycle_time`
with constant times, :func:`exponential_cycle_time` with random ones), or for nobody
(:func:`asynchronous_throughput`).
"""

from dectool.theory._cycle_times import (
    critical_circuit as critical_circuit,
    cycle_time as cycle_time,
)
from dectool.theory._iteration import (
    Iteration as Iteration,
    iteration as iteration,
    iteration_matrix as iteration_matrix,
    linearize as linearize,
    rate as rate,
)
from dectool.theory._jump_chain import exponential_cycle_time as exponential_cycle_time
from dectool.theory._order_statistics import (
    expected_maximum as expected_maximum,
    expected_order_statistic as expected_order_statistic,
    variance_of_maximum as variance_of_maximum,
)
from dectool.theory._stragglers import (
    asynchronous_speedup as asynchronous_speedup,
    asynchronous_throughput as asynchronous_throughput,
    local_sgd_round_time as local_sgd_round_time,
    synchronous_throughput as synchronous_throughput,
)

__all__ = [
    "Iteration",
    "asynchronous_speedup",
    "asynchronous_throughput",
    "critical_circuit",
    "cycle_time",
    "expected_maximum",
    "expected_order_statistic",
    "exponential_cycle_time",
    "iteration",
    "iteration_matrix",
    "linearize",
    "local_sgd_round_time",
    "rate",
    "synchronous_throughput",
    "variance_of_maximum",
]
