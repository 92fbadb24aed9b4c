"""Random programs: the same bits, times, messages and bytes on every simulated backend."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, event, given, settings, strategies as st

import dectool
from dectool import sim
from dectool.sim import AlphaBeta
from dectool.testing import assert_same_bits, random_script, run_script


@dataclasses.dataclass
class HypothesisDraw:
    """Choices made, and made smaller, by Hypothesis."""

    data: st.DataObject

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def integer(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))


def draw_network(draw: HypothesisDraw, n: int) -> AlphaBeta:
    rng = np.random.default_rng(draw.integer(0, 2**16))
    latency = draw.pick([0.0, 1e-5, rng.exponential(1e-5, (n, n))])
    bandwidth = draw.pick([np.inf, 1e6, rng.exponential(1e6, (n, n)) + 1.0])
    return AlphaBeta(latency, bandwidth, port=draw.pick(["serial", "parallel"]))


def draw_compute(draw: HypothesisDraw, n: int) -> sim.ComputeModel:
    slow = dict.fromkeys(range(n // 2), 3.0)
    return draw.pick(
        [
            sim.Constant(1e-4),
            sim.Exponential(1e-3),
            sim.FlopRate(1e6),
            sim.PerRank(slow, sim.LogNormal(1e-3, 0.5)),
            sim.Pareto(1e-3, 2.0),
            sim.ShiftedExponential(1e-3, 1e-3),
        ]
    )


@settings(
    max_examples=1000,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_stacked_equals_sim_to_the_last_bit(data: st.DataObject) -> None:
    draw = HypothesisDraw(data)
    script = random_script(draw)
    options = {
        "n": script.size,
        "topology": script.graph,
        "ranks_per_node": script.ranks_per_node,
        "network": draw_network(draw, script.size),
        "compute": draw_compute(draw, script.size),
        "seed": draw.integer(0, 9),
        "args": (script,),
    }
    for name, _ in script.steps:
        event(name)
    with np.errstate(all="ignore"):
        one = dectool.run(run_script, backend="sim", **options)
        other = dectool.run(run_script, backend="stacked", **options)
    for rank in range(script.size):
        assert_same_bits(other.values[rank], one.values[rank], f"rank {rank}")
    assert list(other.times) == list(one.times)
    assert (other.time, other.messages, other.bytes) == (one.time, one.messages, one.bytes)
