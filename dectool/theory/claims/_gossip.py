"""Averaging with a fixed mixing matrix."""

from __future__ import annotations

import numpy as np

from dectool.algorithms import Gossip
from dectool.errors import TopologyError
from dectool.problems import Averaging
from dectool.solve import solve
from dectool.theory._arguments import whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.topology import Topology, ring


def gossip_contracts_at_rho(topology: Topology | None = None, *, steps: int = 50) -> Evidence:
    r"""Check that gossip contracts by ρ in each step, no worse and at worst no better.

    .. math:: \|X^k - 1 \bar x^\top\|_F \le \rho^k \|X^0 - 1 \bar x^\top\|_F,
       \qquad \rho = \|W - J\|_2

    with equality from the eigenvector of the eigenvalue of W of modulus ρ. The bound is checked
    from starting points with every mode in them.

    Args:
        topology: With symmetric doubly stochastic weights; default: a ring of 16.
        steps: Rounds of gossip, at least 1.

    Raises:
        TopologyError: W is not symmetric and doubly stochastic.

    Example:
        >>> from dectool import topology
        >>> gossip_contracts_at_rho(topology.petersen(), steps=20).verdict.agrees
        True

    References:
        L. Xiao & S. Boyd, Fast linear iterations for distributed averaging, Systems & Control
        Letters 53(1), 2004.
    """
    graph = ring(16) if topology is None else topology
    if not (graph.is_symmetric and graph.is_doubly_stochastic):
        raise TopologyError(
            f"{graph.name} has weights that are not symmetric and doubly stochastic, and rho is "
            "reached from an eigenvector only then; for other weights see "
            "topology.consensus_rate"
        )
    steps = whole("steps", steps, 1)
    values, vectors = np.linalg.eigh(graph.to_dense() - 1.0 / graph.size)
    slowest = vectors[:, np.argmax(np.abs(values))]
    bound = graph.rho ** np.arange(steps + 1.0)
    starts = {"slowest mode": slowest, "all modes": vectors @ np.ones(graph.size)}
    measured = {
        name: solve(Gossip(), Averaging(x[:, None]), topology=graph, steps=steps)["consensus_error"]
        for name, x in starts.items()
    }
    shrunk = {name: error / error[0] for name, error in measured.items()}
    apart = np.abs(shrunk["slowest mode"] - bound)
    worst = int(np.argmax(apart))
    excess = int(np.argmax(shrunk["all modes"] / np.maximum(bound, 1e-14)))
    return Evidence(
        f"gossip on {graph.name} contracts by rho = {graph.rho:.9g} per step (Xiao & Boyd 2004)",
        (
            Check.equal(
                f"error from the slowest mode (worst of {steps} steps: {worst}; relative to the "
                "first)",
                float(shrunk["slowest mode"][worst]),
                float(bound[worst]),
                tolerance=1e-12,
                scale=1.0,
            ),
            Check.at_most(
                f"error from all modes (worst of {steps} steps: {excess})",
                float(shrunk["all modes"][excess]),
                float(bound[excess]) + 1e-14,
            ),
        ),
        tuple(
            Curve(name, np.arange(steps + 1.0), error, bound if name == "slowest mode" else None)
            for name, error in shrunk.items()
        ),
        y="consensus error, relative to the first",
    )
