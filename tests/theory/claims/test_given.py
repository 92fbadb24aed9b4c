"""What claims are given: topologies, schedules and problems that are none are refused by name."""

import inspect

import pytest

from dectool import problems, topology
from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.theory import claims

WRONG = {
    "topology": ("ring", topology.one_peer_exponential(8)),
    "topologies": (topology.ring(8), ["ring", "ring"]),
    "schedule": ("one-peer",),
    "problem": ("quadratic", topology.ring(8)),
}
CASES = [
    pytest.param(name, argument, wrong, id=f"{name}-{argument}-{number}")
    for name in claims.__all__
    for argument in inspect.signature(getattr(claims, name)).parameters
    for number, wrong in enumerate(WRONG.get(argument, ()))
]


@pytest.mark.parametrize(("name", "argument", "wrong"), CASES)
def test_what_is_of_another_type_is_refused_by_name(name, argument, wrong):
    with pytest.raises(ArgumentTypeError, match=r"topolog|problem"):
        getattr(claims, name)(**{argument: wrong})


@pytest.mark.parametrize(
    "claim",
    [
        claims.diffusion_ends_at_its_fixed_point,
        claims.uncompressed_methods_are_their_originals,
        claims.tracked_gradients_sum_to_the_gradients,
    ],
)
def test_problem_and_topology_are_of_one_size(claim):
    with pytest.raises(ArgumentError, match="the problem has 5 ranks and the topology 6"):
        claim(topology.ring(6), problems.Quadratic.random(5, 2))


@pytest.mark.parametrize("lr", ["fast", True, None])
def test_a_step_size_is_a_number(lr):
    with pytest.raises(ArgumentTypeError, match="lr must be a number, got"):
        claims.exact_methods_are_their_block_matrices(lr=lr)


@pytest.mark.parametrize("lr", [0.0, -1.0, float("nan"), float("inf")])
def test_a_step_size_is_finite_and_above_zero(lr):
    with pytest.raises(ArgumentError, match="must be above 0 and finite"):
        claims.exact_methods_are_their_block_matrices(lr=lr)


def test_a_single_rank_averages_exactly_in_no_round():
    assert claims.laplacian_steps_average_exactly(topology.complete(1)).verdict
