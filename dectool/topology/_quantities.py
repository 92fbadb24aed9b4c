"""Quantities of a topology beyond its eigenvalues, by which the theory speaks of mixing."""

from __future__ import annotations

import math

import numpy as np

from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology import _spectrum
from dectool.topology._edges import Floats, real
from dectool.topology._topology import Topology


def consensus_rate(topology: Topology) -> float:
    r"""Return :math:`p = 1 - \rho^2`: a step leaves 1 - p of the squared distance to the mean.

    :math:`\lVert W X - \bar X \rVert_F^2 \le (1 - p) \lVert X - \bar X \rVert_F^2`, with equality
    for some X.

    Args:
        topology: With rows and columns of W that sum to 1.

    Raises:
        TopologyError: W is not doubly stochastic.

    Example:
        >>> from dectool import topology
        >>> round(topology.consensus_rate(topology.hypercube(3)), 12)
        0.75

    References:
        A. Koloskova, N. Loizou, S. Boreiri, M. Jaggi, S. U. Stich, A unified theory of
        decentralized SGD with changing topology and local updates, ICML 2020, assumption 4.
    """
    _need_doubly("consensus_rate", topology)
    return 1.0 - topology.rho**2


def consensus_rounds(topology: Topology, eps: float) -> int:
    r"""Return the least k with :math:`\rho^k \le` eps.

    So many steps bring every start within eps times its distance to the mean; for normal W, as
    symmetric ones are, fewer do not.

    Args:
        topology: With rows and columns of W that sum to 1, and rho < 1.
        eps: Above 0, below 1.

    Raises:
        ArgumentError: eps is out of range.
        TopologyError: W is not doubly stochastic, or rho is 1.

    Example:
        >>> from dectool import topology
        >>> topology.consensus_rounds(topology.hypercube(3), eps=0.01)
        7

    References:
        L. Xiao, S. Boyd, Fast linear iterations for distributed averaging, Systems & Control
        Letters 53, 2004.
    """
    _need_doubly("consensus_rounds", topology)
    eps = _fraction("eps", eps)
    rho = topology.rho
    if rho >= 1.0 - 1e-15:
        raise TopologyError(
            f"consensus_rounds of {topology.name}: rho is {rho:g}, so a start may never come "
            "closer; use topology.lazy()"
        )
    # Rounding in rho or in the quotient must not add a round: 0.5**2 is 0.25.
    return 1 if rho < 1e-12 else max(1, math.ceil(math.log(eps) / math.log(rho) - 1e-9))


def mixing_time(topology: Topology, eps: float = 0.25) -> int:
    r"""Return the least k with :math:`\max_i \frac12 \lVert e_i^T W^k - \pi^T \rVert_1 \le` eps.

    W is taken as the Markov chain of a walk that moves from i to j with probability W[i, j].

    Args:
        topology: At most 3000 ranks; W >= 0 with rows that sum to 1, and slem < 1.
        eps: Distance in total variation, above 0, below 1.

    Raises:
        ArgumentError: eps is out of range, or the graph too large.
        TopologyError: W has negative weights or other sums, or the walk never settles.

    Example:
        >>> from dectool import topology
        >>> topology.mixing_time(topology.complete(8)), topology.mixing_time(topology.ring(8))
        (1, 5)

    References:
        D. A. Levin, Y. Peres, E. L. Wilmer, Markov chains and mixing times, AMS 2009, section 4.5.
    """
    _need_chain("mixing_time", topology)
    eps = _fraction("eps", eps)
    if topology.slem >= 1.0 - 1e-12:
        raise TopologyError(
            f"mixing_time of {topology.name}: the walk is periodic (slem is 1) and never settles; "
            "use topology.lazy()"
        )

    def far(power: Floats) -> bool:
        return bool(0.5 * np.abs(power - topology.perron).sum(axis=1).max() > eps + 1e-12)

    if not far(np.eye(topology.size)):
        return 0
    powers = [topology.to_dense()]
    while far(powers[-1]):
        powers.append(powers[-1] @ powers[-1])
    # The distance never grows, so the last step that is still too far has these binary digits.
    k, reached = 0, np.eye(topology.size)
    for digit in range(len(powers) - 2, -1, -1):
        candidate = reached @ powers[digit]
        if far(candidate):
            k, reached = k + 2**digit, candidate
    return k + 1


def dobrushin(topology: Topology) -> float:
    r"""Return :math:`\tau(W) = \frac12 \max_{i,j} \sum_k |W_{ik} - W_{jk}|`.

    :math:`\max W x - \min W x \le \tau(W) (\max x - \min x)`, and τ(AB) <= τ(A) τ(B), also
    where W is not symmetric and for products of different matrices.

    Args:
        topology: At most 3000 ranks; W >= 0 with rows that sum to 1.

    Raises:
        ArgumentError: The graph is too large.
        TopologyError: W has negative weights or other sums.

    Example:
        >>> from dectool import topology
        >>> topology.dobrushin(topology.complete(4)), topology.dobrushin(topology.ring(8))
        (0.0, 1.0)

    References:
        R. L. Dobrushin, Central limit theorem for nonstationary Markov chains, Theory Probab.
        Appl. 1, 1956.
    """
    _need_chain("dobrushin", topology)
    W = topology.to_dense()
    return float(max(0.5 * np.abs(W[i:] - W[i]).sum(axis=1).max() for i in range(topology.size)))


def effective_resistance(topology: Topology) -> Floats:
    r"""Return the resistance between each two ranks if every edge is a resistor of 1 ohm, (n, n).

    :math:`R_{ij} = (e_i - e_j)^T L^+ (e_i - e_j)`, L the Laplacian of the graph; the weights do
    not matter. Half the sum of all entries is n times the sum of 1/l over the eigenvalues l > 0
    of L.

    Args:
        topology: Connected, undirected, at most 3000 ranks.

    Raises:
        ArgumentError: The graph is too large.
        TopologyError: The graph is directed or not connected.

    Example:
        >>> from dectool import topology
        >>> R = topology.effective_resistance(topology.ring(4))
        >>> [round(float(r), 12) for r in R[0]]
        [0.0, 0.75, 1.0, 0.75]

    References:
        A. Ghosh, S. Boyd, A. Saberi, Minimizing effective resistance of a graph, SIAM Review
        50(1), 2008.
    """
    _need("effective_resistance", topology)
    if topology.is_directed or not topology.is_connected:
        raise TopologyError(
            f"effective_resistance needs a connected undirected graph, and {topology.name} is not; "
            "use graph.to_undirected()"
        )
    n, edges = topology.size, topology.edges
    L = np.diag(topology.in_degrees.astype(np.float64))
    L[edges.receivers, edges.senders] -= 1.0
    # L + J has the inverse L⁺ + J, and J falls out of the differences.
    inverse = np.linalg.inv(L + 1.0 / n)
    diagonal = inverse.diagonal()
    R: Floats = np.maximum(diagonal[:, None] + diagonal - inverse - inverse.T, 0.0)
    np.fill_diagonal(R, 0.0)
    return R


def effective_number_of_neighbors(topology: Topology, gamma: float) -> float:
    r"""Return how many ranks a rank averages with in effect, if it forgets with factor gamma.

    .. math:: n_W(\gamma) = \frac{1/(1 - \gamma)}
        {\frac1n \sum_i |\lambda_i|^2 / (1 - \gamma |\lambda_i|^2)},

    the ratio of the variances of the walks :math:`z^+ = \sqrt\gamma\, z + \xi` alone and
    :math:`z^+ = W (\sqrt\gamma\, z + \xi)` together: 1 without talking, n for full averaging,
    and n for γ → 1 on every connected graph with slem < 1.

    Args:
        topology: With a normal W of at most 3000 ranks.
        gamma: At least 0, below 1.

    Raises:
        ArgumentError: gamma is out of range, or the graph too large.
        TopologyError: W is not normal.

    Example:
        >>> from dectool import topology
        >>> t = topology.ring(16)
        >>> [round(topology.effective_number_of_neighbors(t, g), 2) for g in (0.0, 0.999)]
        [3.0, 15.63]

    References:
        T. Vogels, H. Hendrikx, M. Jaggi, Beyond spectral gap: the role of the topology in
        decentralized learning, NeurIPS 2022.
    """
    _need("effective_number_of_neighbors", topology)
    gamma = real("gamma", gamma)
    if not 0 <= gamma < 1:
        raise ArgumentError(f"gamma must be at least 0 and below 1, got {gamma:g}")
    if not topology.is_normal:
        raise TopologyError(
            f"effective_number_of_neighbors needs W Wᵀ = Wᵀ W, and {topology.name} "
            f"({topology.weights}) is not so; use symmetric weights"
        )
    squares = np.square(np.abs(topology.eigenvalues))
    return float(1.0 / (1.0 - gamma) / np.mean(squares / (1.0 - gamma * squares)))


def _need_topology(who: str, topology: object) -> None:
    if not isinstance(topology, Topology):
        raise ArgumentTypeError(
            f"{who}: topology must be a Topology, got {type(topology).__name__}; use "
            "topology.from_graph(graph), or schedule.at(k)"
        )


def _need(who: str, topology: Topology) -> None:
    _need_topology(who, topology)
    if topology.size > _spectrum.DENSE_RESCUE:
        raise ArgumentError(
            f"{who} of {topology.name}: it is computed up to size {_spectrum.DENSE_RESCUE}; study "
            "a smaller graph of the same family, or use rho"
        )


def _need_doubly(who: str, topology: Topology) -> None:
    _need_topology(who, topology)
    if not topology.is_doubly_stochastic:
        raise TopologyError(
            f"{who} needs rows and columns that sum to 1, and those of {topology.name} "
            f"({topology.weights}) do not; use weights='metropolis_hastings' or 'sinkhorn'"
        )


def _need_chain(who: str, topology: Topology) -> None:
    _need(who, topology)
    if not (topology.is_row_stochastic and topology.is_nonnegative):
        raise TopologyError(
            f"{who} needs W >= 0 with rows that sum to 1, and that of {topology.name} "
            f"({topology.weights}) is not so; use weights='metropolis_hastings' or 'uniform'"
        )


def _fraction(name: str, value: float) -> float:
    number = real(name, value)
    if not 0 < number < 1:
        raise ArgumentError(f"{name} must be above 0 and below 1, got {number:g}")
    return number
