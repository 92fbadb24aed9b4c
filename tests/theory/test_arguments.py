"""What predictions are given: what is of another kind is refused by name."""

import pytest

import dectool
from dectool import algorithms, sim, theory, topology
from dectool.errors import ArgumentTypeError
from tests.theory.q8 import QUADRATIC, RING

EXTRA = algorithms.EXTRA(lr=0.05)
NETWORK = sim.AlphaBeta(latency=1e-5, bandwidth=1e9)
OF_A_RUN = (
    theory.predict,
    theory.rate,
    theory.iteration,
    theory.fixed_point,
    theory.steady_state,
    theory.largest_stable_lr,
    theory.transient_time,
    theory.bounds,
)


@pytest.mark.parametrize("call", OF_A_RUN)
def test_algorithms_problems_and_topologies(call):
    for wrong in ("EXTRA", algorithms.EXTRA):
        with pytest.raises(ArgumentTypeError, match=r"algorithm is .*; make an instance"):
            call(wrong, QUADRATIC, RING)
    with pytest.raises(ArgumentTypeError, match="problem is a Topology; give one of"):
        call(EXTRA, RING, QUADRATIC)
    with pytest.raises(ArgumentTypeError, match="topology must be a Topology, got str"):
        call(EXTRA, QUADRATIC, "ring")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: theory.cost_to_accuracy("EXTRA", RING, NETWORK, QUADRATIC),
            "algorithm is 'EXTRA'",
        ),
        (lambda: theory.cost_to_accuracy(EXTRA, RING, NETWORK, RING), "problem is a Topology"),
        (lambda: theory.linearize(RING), "problem is a Topology"),
        (lambda: theory.compare("run", "prediction"), "takes a History and a Prediction"),
        (lambda: theory.steady_state(EXTRA, QUADRATIC, RING, noise="loud"), "noise must be numb"),
        (lambda: theory.mean_square_error(EXTRA, QUADRATIC, RING, True), "steps must be an int"),
        (lambda: theory.cycle_time("ring", 1.0), "topology must be a Topology, got str"),
        (lambda: theory.cycle_time(RING, "slow"), "seconds must be numbers, got 'slow'"),
        (lambda: theory.cycle_time(RING, 1.0, delay="late"), "delay must be numbers, got 'late'"),
        (lambda: theory.exponential_cycle_time("ring"), "topology must be a Topology, got str"),
        (lambda: theory.synchronous_throughput(["slow"]), "seconds must be numbers"),
        (lambda: theory.asynchronous_speedup(4, "slow"), "slowdown must be a number, got 'slow'"),
        (lambda: theory.exponential_cycle_time(RING, max_states=1e5), "max_states must be an int"),
        (lambda: theory.transient_time(EXTRA, QUADRATIC, RING, factor="2"), "factor must be a num"),
        (
            lambda: theory.cost_to_accuracy(EXTRA, RING, NETWORK, QUADRATIC, eps="1e-6"),
            "eps must be a number, got '1e-6'",
        ),
        (
            lambda: theory.claims.gradient_tracking_needs_one_over_p_steps(condition=[1.0]),
            r"condition must be a number, got \[1.0\]",
        ),
    ],
)
def test_what_is_of_another_kind_is_refused_by_name(call, message):
    with pytest.raises(ArgumentTypeError, match=message):
        call()


def test_a_prediction_is_held_against_a_history():
    history = dectool.solve(EXTRA, QUADRATIC, topology=RING, steps=3)
    with pytest.raises(ArgumentTypeError, match="takes a History and a Prediction"):
        theory.compare(history, theory.rate(EXTRA, QUADRATIC, topology.ring(8)))
