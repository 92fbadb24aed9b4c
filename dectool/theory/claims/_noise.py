"""How far noise in the gradients keeps descent with local mixing from its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dectool import algorithms
from dectool.algorithms import Algorithm
from dectool.communicator import Communicator
from dectool.errors import ArgumentError, TopologyError
from dectool.problems import Quadratic
from dectool.run import run
from dectool.theory._arguments import Floats, whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory._noise import steady_state
from dectool.theory.claims._given import checked_rate, checked_topologies, checked_topology
from dectool.theory.claims._samples import DEVIATIONS
from dectool.topology import Topology, complete, exponential, ring

_FLOORS: dict[str, Callable[[float, float, Floats], tuple[Floats, Floats]]] = {
    # By eigenvalue of W: how a mode decays, and the factor of the noise in it.
    "DGD": lambda a, h, modes: (modes - a * h, np.full_like(modes, a)),
    "ATC": lambda a, h, modes: (modes * (1.0 - a * h), a * modes),
}


def noise_has_a_floor_in_each_mode(
    topology: Topology | None = None,
    *,
    lr: float = 0.3,
    curvature: float = 1.0,
    noise: float = 1.0,
    steps: int = 400,
    copies: int = 128,
    seed: int = 0,
) -> Evidence:
    r"""Check the variance that noise leaves in each mode of the network.

    Gradients are :math:`h x_i + \xi_i` with independent noise of variance σ². In the mode of the
    eigenvalue λ of W the iterates have, in the long run, the variance

    .. math:: \frac{\alpha^2 \sigma^2}{1 - (\lambda - \alpha h)^2} \quad \text{(DGD)}, \qquad
       \frac{\alpha^2 \sigma^2 \lambda^2}{1 - \lambda^2 (1 - \alpha h)^2} \quad \text{(ATC)}

    so every eigenvalue counts, and not ρ alone. Measured are time averages over independent
    coordinates; they may be five standard errors off.

    Args:
        topology: With symmetric doubly stochastic weights; default: a ring of 8.
        lr: Step size α.
        curvature: Curvature h, the same on all ranks.
        noise: Standard deviation σ of each coordinate of a gradient.
        steps: Steps that are averaged over.
        copies: Independent coordinates.
        seed: Seed of the noise.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: W is not symmetric and doubly stochastic.

    Example:
        >>> bool(noise_has_a_floor_in_each_mode().verdict)
        True

    References:
        A. H. Sayed, Foundations and Trends in Machine Learning 7(4-5), 2014, chapter 11.
    """
    graph = checked_topology(topology, ring(8))
    if not (graph.is_symmetric and graph.is_doubly_stochastic):
        raise TopologyError(
            f"{graph.name} has weights that are not symmetric and doubly stochastic, and only with "
            "those every mode has a floor of its own; see theory.steady_state for others"
        )
    values, vectors = np.linalg.eigh(graph.to_dense())
    a, h = checked_rate("lr", lr), checked_rate("curvature", curvature)
    sigma, flat = checked_rate("noise", noise), _flat(graph.size, h, copies)
    checks, curves = [], []
    for name, formula in _FLOORS.items():
        decay, factor = formula(a, h, values)
        if np.abs(decay).max() >= 1.0:
            raise ArgumentError(f"{name} does not converge on {graph.name} with lr={lr}; lower it")
        floors = (factor * sigma) ** 2 / (1.0 - decay**2)
        algorithm = algorithms.get(name, lr=a)
        burn = int(np.ceil(np.log(1e-4) / np.log(np.abs(decay).max()))) if decay.any() else 1
        X = _noisy_iterates(algorithm, flat, graph, sigma, burn, steps, seed)
        measured = np.mean((vectors.T @ X) ** 2, axis=(0, 2))
        errors = _standard_errors(decay, steps * copies)
        apart = np.abs(measured - floors) / np.maximum(floors, 1e-12 * floors.max())
        worst = int(np.argmax(np.where(floors > 1e-9 * floors.max(), apart / errors, 0.0)))
        checks.append(
            Check.equal(
                f"{name}: variance in the mode farthest off (eigenvalue {values[worst]:.4g})",
                float(measured[worst]),
                float(floors[worst]),
                tolerance=DEVIATIONS * float(errors[worst]),
            )
        )
        exact = steady_state(algorithm, _flat(graph.size, h, 1), graph, sigma)
        checks.append(
            Check.equal(
                f"{name}: mean variance of the ranks, by the Lyapunov equation",
                exact.variance,
                float(floors.mean()),
                tolerance=1e-9,
            )
        )
        curves.append(Curve(name, values, measured, floors))
    return Evidence(
        f"on {graph.name} noise leaves its closed-form variance in every mode (Sayed 2014)",
        tuple(checks),
        tuple(curves),
        x="eigenvalue of W",
        y="variance",
        scale="linear",
    )


def noise_of_the_mean_is_divided_by_n(
    topologies: Sequence[Topology] | None = None,
    *,
    lr: float = 0.3,
    curvature: float = 1.0,
    noise: float = 1.0,
    steps: int = 300,
    copies: int = 64,
    seed: int = 0,
) -> Evidence:
    r"""Check that n ranks divide the noise of their mean by n, whatever the mixing matrix.

    With one curvature h the mean of the iterates of ATC moves as gradient descent on the mean of
    n noisy gradients, whose variance in the long run is

    .. math:: \mathrm{E} \|\bar x - x^*\|^2 = \frac{\alpha \sigma^2}{n h (2 - \alpha h)}

    per coordinate: the speed-up is linear, and exact. On all topologies of one size the mean is the
    same for the same noise, step by step.

    Args:
        topologies: With doubly stochastic weights; default: a ring, an exponential graph and a
            complete graph of 4 and of 16.
        lr: Step size α, below 2 / h.
        curvature: Curvature h, the same on all ranks.
        noise: Standard deviation σ of each coordinate of a gradient.
        steps: Steps that are averaged over.
        copies: Independent coordinates.
        seed: Seed of the noise.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: A matrix is not doubly stochastic.

    Example:
        >>> bool(noise_of_the_mean_is_divided_by_n().verdict)
        True

    References:
        X. Lian, C. Zhang, H. Zhang, C.-J. Hsieh, W. Zhang & J. Liu, Can decentralized algorithms
        outperform centralized algorithms?, NeurIPS 2017.
    """
    graphs = checked_topologies(
        topologies, [kind(n) for n in (4, 16) for kind in (ring, exponential, complete)]
    )
    if not graphs:
        raise ArgumentError("topologies is empty; give one or more")
    for graph in graphs:
        if not graph.is_doubly_stochastic:
            raise TopologyError(
                f"{graph.name} has weights that are not doubly stochastic, so it does not keep the "
                "mean; see topology.from_graph for some that do"
            )
    h = checked_rate("curvature", curvature)
    a, sigma = checked_rate("lr", lr, 2.0 / h), checked_rate("noise", noise)
    decay = 1.0 - a * h
    burn = 1 + int(np.log(1e-4) / np.log(abs(decay))) if decay else 1
    error = float(_standard_errors(np.array([decay]), steps * copies)[0])
    means: dict[int, Floats] = {}
    checks, measured = [], []
    for graph in graphs:
        X = _noisy_iterates(
            algorithms.ATC(lr=a), _flat(graph.size, h, copies), graph, sigma, burn, steps, seed
        )
        mean = X.mean(axis=1)
        floor = a * sigma**2 / (graph.size * h * (2.0 - a * h))
        measured.append(float(np.mean(mean**2)))
        if graph.size not in means:
            means[graph.size] = mean
            checks.append(
                Check.equal(
                    f"variance of the mean of {graph.size} ranks",
                    measured[-1],
                    floor,
                    tolerance=DEVIATIONS * error,
                )
            )
        else:
            checks.append(
                Check.equal(
                    f"{graph.name}: path of the mean, from that on the first graph of this size "
                    "(relative to its spread)",
                    float(np.abs(mean - means[graph.size]).max()),
                    0.0,
                    tolerance=1e-10,
                    scale=float(np.sqrt(floor)),
                )
            )
    sizes = np.array([float(graph.size) for graph in graphs])
    floors = a * sigma**2 / (sizes * h * (2.0 - a * h))
    return Evidence(
        "the mean of n ranks has an n-th of the noise, whatever the mixing matrix (Lian et al. "
        "2017)",
        tuple(checks),
        (Curve("mean of the ranks", sizes, np.array(measured), floors),),
        x="ranks",
        y="variance of the mean",
        scale="loglog",
    )


def _flat(size: int, curvature: float, dim: int) -> Quadratic:
    """Return quadratics of one curvature and optimum zero."""
    zeros = np.zeros((size, whole("copies", dim, 1)))
    return Quadratic(h=zeros + curvature, b=zeros)


def _noisy_iterates(
    algorithm: Algorithm,
    problem: Quadratic,
    graph: Topology,
    noise: float,
    burn: int,
    steps: int,
    seed: int,
) -> Floats:
    """Return the iterates of each step after the first ``burn``, shape (steps, n, d)."""
    rng = np.random.default_rng(seed)
    found: list[Any] = []
    total = burn + whole("steps", steps, 2)

    def disturbed(comm: Communicator) -> Any:
        return lambda x: problem.grad(x, comm.rank) + noise * rng.normal(size=x.shape)

    def program(comm: Communicator) -> None:
        grad = disturbed(comm)
        state = algorithm.init(comm, np.zeros((problem.size, problem.dim)), grad)
        for k in range(total):
            state = algorithm.at(k).step(comm, state, grad)
            if k >= burn:
                found.append(state.x)

    run(program, graph.size, backend="stacked", topology=graph)
    return np.array(found)


def _standard_errors(decay: Floats, samples: int) -> Floats:
    """Return the relative standard errors of variances, from samples of which each follows on."""
    squares = decay**2
    errors: Floats = np.sqrt(2.0 / samples * (1.0 + squares) / (1.0 - squares))
    return errors
