"""A network for messages that stand for larger ones takes the time of the larger ones."""

import math

import numpy as np
import pytest

import dectool
from dectool import compression, sim, topology
from dectool.errors import ArgumentError, ArgumentTypeError

NETWORKS = (
    sim.AlphaBeta(latency=1e-3, bandwidth=1e6),
    sim.AlphaBeta(latency=1e-3 * np.ones((6, 6)), bandwidth=1e6, port="parallel"),
    sim.AlphaBeta(latency=1e-3, bandwidth=1e6, codec=sim.Codec(compress=1e7, decompress=2e7)),
    sim.LogGP(L=1e-3, o=1e-4, g=1e-5, G=1e-6),
)


def seconds(network, numbers, compressor, backend):
    def program(comm):
        shape = (comm.size, numbers) if backend == "stacked" else numbers
        for _ in range(3):
            comm.neighbor_allreduce(np.ones(shape), compressor=compressor)
        comm.allreduce(np.ones(shape), algorithm="ring")

    return dectool.run(program, backend=backend, topology=topology.star(6), network=network).times


@pytest.mark.parametrize(
    ("network", "backend"),
    [*((network, "sim") for network in NETWORKS), *((net, "stacked") for net in NETWORKS[:-1])],
    ids=str,
)
@pytest.mark.parametrize("compressor", [None, compression.Cast("float16")])
def test_it_takes_the_time_of_the_larger_messages(network, compressor, backend):
    large = seconds(network, 6 * 500, compressor, backend)
    small = seconds(network.scaled(500.0), 6, compressor, backend)
    np.testing.assert_allclose(small, large, rtol=1e-12)


def test_what_it_says_of_itself():
    network = sim.AlphaBeta(latency=np.full((3, 3), 0.5), bandwidth=8.0)
    scaled = network.scaled(2)
    assert repr(scaled) == f"{network!r}.scaled(2)"
    assert scaled.message_cost(ranks=3)[:2] == pytest.approx((0.5, 0.25))
    assert not scaled.is_ideal
    assert sim.AlphaBeta().scaled(2).is_ideal
    with pytest.raises(ArgumentError, match="there are 4 ranks"):
        scaled.check_size(4)


@pytest.mark.parametrize("factor", [0.0, -1.0, math.inf, math.nan])
def test_factors_that_are_none(factor):
    with pytest.raises(ArgumentError, match="factor"):
        sim.AlphaBeta().scaled(factor)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sim.AlphaBeta(latency="soon"), r"latency='soon' must be a number, or an array"),
        (lambda: sim.AlphaBeta(bandwidth=[[1.0], [1.0, 2.0]]), r"bandwidth=.* must be a number"),
        (lambda: sim.LogGP(L="1"), r"LogGP: L='1' must be a number"),
        (lambda: sim.Codec(compress=None), r"Codec: compress=None must be a number"),
        (lambda: sim.AlphaBeta().scaled("2"), r"scaled: factor='2' must be a number"),
    ],
)
def test_what_is_no_number_is_named(make, words):
    with pytest.raises(ArgumentTypeError, match=words):
        make()


def test_a_codec_is_part_of_what_a_network_is():
    """Histories keep the text, and tell by it what they were made on."""
    codec = sim.Codec(compress=2e9)
    for make in (sim.AlphaBeta, lambda **more: sim.LogGP(1e-5, **more)):
        assert repr(codec) in repr(make(codec=codec))
        assert "codec" not in repr(make())
