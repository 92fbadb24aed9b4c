"""Laws of random steps against enumeration, against draws, and against published rates."""

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dectool import topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology import _law, _mean_square, _spectrum
from dectool.topology._equi import _exchange
from dectool.topology._matching_law import maximal_matchings
from dectool.topology._steps import half, toward


def pair(n, i, j):
    e = np.eye(n)[i] - np.eye(n)[j]
    return np.eye(n) - np.outer(e, e) / 2


def pairs_of(graph):
    """Every rank wakes alike, and picks a neighbor alike."""
    n = graph.size
    return [
        (1 / n / len(graph.in_neighbors(i)), pair(n, i, j))
        for i in range(n)
        for j in graph.in_neighbors(i)
    ]


def broadcasts_of(graph, gamma):
    n = graph.size
    for i in range(n):
        W = np.eye(n)
        for j in graph.in_neighbors(i):
            W[j, j], W[j, i] = gamma, 1 - gamma
        yield 1 / n, W


def equidyn_of(n, directed, eta=0.5, hops=None):
    hops = range(1, n) if hops is None else hops
    for hop in hops:
        if directed:
            yield (
                1 / len(hops),
                (1 - eta) * np.eye(n)
                + eta * ((n - 1) / n * np.roll(np.eye(n), hop, axis=0) + np.eye(n) / n),
            )
            continue
        for start in range(n):
            step = toward(_exchange(n, hop, start), eta * (n - 1) / n, "", "")
            yield 1 / n / len(hops), step.to_dense()


def matchings_of(graph):
    """Every order of the edges is alike."""
    edges, n = list(graph.graph.edges), graph.size
    orders = list(itertools.permutations(edges))
    for order in orders:
        partner = list(range(n))
        for i, j in order:
            if partner[i] == i and partner[j] == j:
                partner[i], partner[j] = j, i
        yield 1 / len(orders), half(np.array(partner), "").to_dense()


def matcha_of(plan):
    n = plan.size
    for used in itertools.product([0, 1], repeat=len(plan.matchings)):
        W, chance = np.eye(n), 1.0
        for b, part, p in zip(used, plan.matchings, plan.probabilities, strict=True):
            for i, j in part:
                W -= plan.alpha * b * 2 * (np.eye(n) - pair(n, i, j))
            chance *= p if b else 1 - p
        yield chance, W


PLAN = topology.matcha_plan(topology.grid(2, 3), 0.5)
TREE = topology.tree(6, 2)
KNOWN = {
    "random_pair, ring": (topology.random_pair(topology.ring(7)), pairs_of(topology.ring(7))),
    "random_pair, star": (topology.random_pair(topology.star(6)), pairs_of(topology.star(6))),
    "random_pair, tree": (topology.random_pair(TREE), pairs_of(TREE)),
    "random_pair, two": (topology.random_pair(topology.path(2)), pairs_of(topology.path(2))),
    "random_broadcast, ring": (
        topology.random_broadcast(topology.ring(7)),
        broadcasts_of(topology.ring(7), 0.5),
    ),
    "random_broadcast, star": (
        topology.random_broadcast(topology.star(6), gamma=0.2),
        broadcasts_of(topology.star(6), 0.2),
    ),
    "equidyn, directed": (topology.equidyn(7, directed=True), equidyn_of(7, True)),
    "equidyn, directed, hops": (
        topology.equidyn(8, directed=True, eta=0.3, hops=[1, 3, 3]),
        equidyn_of(8, True, 0.3, [1, 3, 3]),
    ),
    "equidyn": (topology.equidyn(6), equidyn_of(6, False)),
    "equidyn, odd, hops": (
        topology.equidyn(7, eta=0.8, hops=[1, 2, 6]),
        equidyn_of(7, False, 0.8, [1, 2, 6]),
    ),
    "random_matching, ring": (
        topology.random_matching(topology.ring(6)),
        matchings_of(topology.ring(6)),
    ),
    "random_matching, tree": (topology.random_matching(TREE), matchings_of(TREE)),
    "random_matching, K3": (
        topology.random_matching(topology.complete(3)),
        matchings_of(topology.complete(3)),
    ),
    "random_matching, K4": (
        topology.random_matching(topology.complete(4)),
        matchings_of(topology.complete(4)),
    ),
    "matcha": (PLAN.schedule(), matcha_of(PLAN)),
    "random_one_peer": (
        topology.random_one_peer(8),
        [(1 / 3, topology.one_peer_exponential(8).at(k).to_dense()) for k in range(3)],
    ),
    "random_choice": (
        topology.random_choice([topology.ring(5), topology.star(5)], [0.7, 0.3]),
        [(0.7, topology.ring(5).to_dense()), (0.3, topology.star(5).to_dense())],
    ),
}
KNOWN = {name: (schedule, list(steps)) for name, (schedule, steps) in KNOWN.items()}


def away(n):
    return np.eye(n) - 1 / n


@pytest.mark.parametrize("name", KNOWN)
def test_moments_by_enumeration(name):
    schedule, steps = KNOWN[name]
    law, n = schedule.law, schedule.size
    assert sum(chance for chance, _ in steps) == pytest.approx(1)
    np.testing.assert_allclose(law.mean.toarray(), sum(c * W for c, W in steps), atol=1e-14)
    rng = np.random.default_rng(1)
    circulant = np.roll(np.eye(n), 1, axis=0)
    for X in (rng.standard_normal((n, n)), away(n), circulant + circulant.T):
        X = X + X.T
        expected = sum(c * W @ X @ W.T for c, W in steps)
        np.testing.assert_allclose(law.forward(X), expected, atol=1e-13)
        expected = sum(c * W.T @ X @ W for c, W in steps)
        np.testing.assert_allclose(law.backward(X), expected, atol=1e-13)
    moment = sum(c * W.T @ W for c, W in steps)
    np.testing.assert_allclose(law.second_moment(), moment, atol=1e-14)
    assert law.is_symmetric == all(np.allclose(W, W.T) for _, W in steps)
    assert not law.has_projections or all(np.allclose(W @ W, W) for _, W in steps)


@pytest.mark.parametrize("name", KNOWN)
def test_rates_by_enumeration(name):
    schedule, steps = KNOWN[name]
    Q = away(schedule.size)
    bound = np.linalg.norm(sum(c * Q @ W.T @ Q @ W @ Q for c, W in steps), 2)
    assert topology.expected_contraction(schedule) == pytest.approx(bound, abs=1e-12)
    kron = sum(c * np.kron(Q @ W, Q @ W) for c, W in steps)
    rate = np.abs(np.linalg.eigvals(kron)).max()
    assert topology.mean_square_rate(schedule) == pytest.approx(rate, abs=1e-10)
    assert rate <= bound + 1e-12


@pytest.mark.parametrize("name", KNOWN)
def test_law_is_that_of_the_steps(name):
    schedule, number = KNOWN[name][0], 300
    drawn = np.array([schedule.at(k).to_dense() for k in range(number)])
    spread = np.sqrt(drawn.var(axis=0) / number)
    assert (np.abs(drawn.mean(axis=0) - schedule.law.mean.toarray()) <= 5 * spread + 1e-12).all()
    known = {W.round(9).tobytes() for _, W in KNOWN[name][1]}
    assert {W.round(9).tobytes() for W in drawn} <= known


def test_geographic_gossip_walks_as_its_steps_do():
    """Every source and target, one by one, with the steps' own code."""
    n = 25
    schedule = topology.geographic_gossip(n, 0.3, seed=4)
    make = schedule._make
    expected = np.zeros((n, n))
    for source, target in itertools.permutations(range(n), 2):
        at = source
        while (nearer := make._nearest(at, make.places[target])) != at:
            at = nearer
        expected += pair(n, source, at) / (n * (n - 1))
    np.testing.assert_allclose(schedule.law.mean.toarray(), expected, atol=1e-14)
    whole = topology.geographic_gossip(12, 0.9, seed=3)
    for find in (topology.expected_contraction, topology.mean_square_rate):
        assert find(whole) == pytest.approx(1 - 1 / 11, abs=1e-13)


def test_published_rates():
    ring = topology.random_pair(topology.ring(16))
    assert topology.mean_square_rate(ring) == pytest.approx(0.990581112908, abs=1e-12)
    assert topology.expected_contraction(ring) == pytest.approx(0.995242470782, abs=1e-12)
    assert topology.expected_contraction(ring) == pytest.approx(
        1 - (1 - math.cos(2 * math.pi / 16)) / 16, abs=1e-13
    )
    spoken = topology.random_broadcast(topology.ring(16))
    assert topology.expected_contraction(spoken) == pytest.approx(0.995219836698, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 10, 64])
def test_closed_forms_of_graphs_alike_from_everywhere(n):
    """Equality for every start, so that bound and rate are one number."""
    cases = {
        topology.equidyn(n, directed=True): (n - 1) / (2 * n),
        topology.random_pair(topology.complete(n)): 1 - 1 / (n - 1),
        topology.random_matching(topology.complete(n)): (0.5 if n % 2 else (n - 2) / (2 * (n - 1))),
    }
    for schedule, factor in cases.items():
        assert topology.expected_contraction(schedule) == pytest.approx(factor, abs=1e-12)
        assert topology.mean_square_rate(schedule) == pytest.approx(factor, abs=1e-12)


def test_mean_of_broadcasts():
    """E[W] = I - (1 - gamma) L / n."""
    graph = topology.star(7)
    L = np.diag(graph.in_degrees) - (graph.to_dense() != 0) + np.eye(7)
    mean = topology.random_broadcast(graph, gamma=0.25).law.mean.toarray()
    np.testing.assert_allclose(mean, np.eye(7) - 0.75 / 7 * L, atol=1e-15)


@pytest.mark.parametrize("budget", [0.3, 0.7])
def test_matcha_factor_is_that_of_its_plan(budget):
    plan = topology.matcha_plan(topology.erdos_renyi(12, 0.4, seed=3), budget)
    law = plan.schedule().law
    np.testing.assert_allclose(law.second_moment(), plan.second_moment(), atol=1e-14)
    assert topology.expected_contraction(plan.schedule()) == pytest.approx(plan.rho, abs=1e-13)


def test_one_topology_and_periods():
    for t in (topology.ring(9), topology.de_bruijn(8), topology.exponential(12)):
        assert topology.expected_contraction(t) == pytest.approx(t.rho**2, abs=1e-14)
        assert topology.mean_square_rate(t) == pytest.approx(t.slem**2, abs=1e-14)
        np.testing.assert_allclose(topology.static(t).law.mean.toarray(), t.to_dense())
    for s in (topology.one_peer_exponential(6), topology.alternating_ring(10)):
        product = np.eye(s.size)
        for k in range(s.period):
            product = s.at(k).W @ product
        radius = np.abs(np.linalg.eigvals(product - 1 / s.size)).max()
        assert topology.mean_square_rate(s) == pytest.approx(radius ** (2 / s.period), abs=1e-12)
    assert topology.mean_square_rate(topology.one_peer_exponential(16)) == 0
    large = topology.alternating_ring(600)
    found = topology.mean_square_rate(large)
    assert found == pytest.approx(math.cos(math.pi / 300) ** 2, abs=1e-10)


@given(st.integers(3, 8), st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_any_finite_law(n, seed, number):
    rng = np.random.default_rng(seed)
    steps = [
        topology.random_digraph(n, 0.6, seed=int(rng.integers(99)), weights="uniform")
        if rng.random() < 0.5
        else topology.from_matrix(pair(n, 0, int(rng.integers(1, n))), require_connected=False)
        for _ in range(number)
    ]
    chances = rng.dirichlet(np.ones(number))
    law, X = topology.Law.finite(steps, chances), rng.standard_normal((n, n))
    dense = [t.to_dense() for t in steps]
    expected = sum(c * W @ X @ W.T for c, W in zip(chances, dense, strict=True))
    np.testing.assert_allclose(law.forward(X), expected, atol=1e-12)
    expected = sum(c * W.T @ X @ W for c, W in zip(chances, dense, strict=True))
    np.testing.assert_allclose(law.backward(X), expected, atol=1e-12)


def test_sparse_methods_at_small_sizes(monkeypatch):
    names = [
        "random_broadcast, star",
        "equidyn, odd, hops",
        "matcha",
        "random_pair, ring",
        "random_pair, tree",
    ]
    expected = {name: topology.mean_square_rate(KNOWN[name][0]) for name in names}
    monkeypatch.setattr(_mean_square, "_SMALL", 3)
    monkeypatch.setattr(_law, "_CHUNK", 16)
    for name in names:
        found = topology.mean_square_rate(KNOWN[name][0])
        assert found == pytest.approx(expected[name], abs=1e-11)
    monkeypatch.setattr(_spectrum, "DENSE", 5)
    bound = topology.expected_contraction(KNOWN["random_broadcast, ring"][0])
    monkeypatch.undo()
    again = topology.expected_contraction(KNOWN["random_broadcast, ring"][0])
    assert bound == pytest.approx(again, abs=1e-12)


def test_preconditioned_rates(monkeypatch):
    """The slowest second moments of a long path, with and without help."""
    path, grid = topology.random_pair(topology.path(40)), topology.random_pair(topology.grid(6, 7))
    plan = topology.matcha(topology.path(40), 0.5)
    helped = [topology.mean_square_rate(s) for s in (path, grid, plan)]
    monkeypatch.setattr(_mean_square, "_by_preconditioning", lambda *_: None)
    alone = [topology.mean_square_rate(s) for s in (path, grid, plan)]
    np.testing.assert_allclose(helped, alone, atol=1e-11, rtol=0)
    monkeypatch.undo()
    found = topology.mean_square_rate(topology.random_pair(topology.path(200)))
    slowest = topology.expected_contraction(topology.random_pair(topology.path(200)))
    assert slowest**2 < found < slowest


def test_preconditioning_that_does_not_help_says_so():
    """No rate but a number is worse than none: eigenvalues this close take more steps."""
    values = np.linspace(0, 1 - 1e-7, 3000)
    assert _mean_square._by_preconditioning(lambda v: values * v, lambda v: v, 3000) is None
    exact = _mean_square._by_preconditioning(lambda v: values * v, lambda v: v / (1 - values), 3000)
    assert abs(exact[-1]) == pytest.approx(1, abs=1e-9)


def test_other_eigenvectors_change_sign(monkeypatch):
    """Second moments of the largest eigenvalue are semidefinite; what is orthogonal is not."""
    schedule = topology.random_pair(topology.path(40))
    right = topology.mean_square_rate(schedule)
    law, n = schedule.law, 40
    rows, columns = np.triu_indices(n)
    scale = np.where(rows == columns, 1.0, math.sqrt(0.5))
    modes = np.linalg.eigh(law.mean.toarray())[1]
    second = np.outer(modes[:, -2], modes[:, -3])
    other = (second + second.T)[rows, columns] / scale / math.sqrt(2)
    monkeypatch.setattr(_mean_square, "_by_preconditioning", lambda *_: other)
    assert topology.mean_square_rate(schedule) == pytest.approx(right, abs=1e-11)


def test_laws_of_circles_know_it():
    for make in (topology.random_pair, topology.random_broadcast, topology.random_matching):
        assert make(topology.ring(8)).law.has_rotations
        for other in (topology.grid(2, 4), topology.hypercube(3), topology.petersen()):
            assert not make(other).law.has_rotations
    assert topology.random_pair(topology.path(9)).law.has_rotations is False
    assert topology.equidyn(8).law.has_rotations


def test_larger_graphs():
    n = 100
    ring = topology.random_pair(topology.ring(n))
    rate, bound = topology.mean_square_rate(ring), topology.expected_contraction(ring)
    slowest = np.linalg.eigvalsh(ring.law.mean.toarray())[-2]
    assert slowest**2 < rate < bound == pytest.approx(slowest, abs=1e-13)
    big = topology.random_pair(topology.torus(100, 100))
    closed = 1 - (1 - math.cos(2 * math.pi / 100)) / 2 / 10_000
    assert topology.expected_contraction(big) == pytest.approx(closed, abs=1e-12)


def test_all_maximal_matchings_of_rings():
    """Their numbers are Perrin's, OEIS A001608."""
    perrin = {5: 5, 6: 5, 7: 7, 8: 10, 9: 12, 10: 17, 11: 22, 12: 29}
    for n, number in perrin.items():
        i = np.arange(n)
        found = maximal_matchings(i, (i + 1) % n)
        assert len(found) == number
        assert sum(found.values()) == pytest.approx(1)


def test_laws_pickle():
    for schedule, _ in KNOWN.values():
        again = pickle.loads(pickle.dumps(schedule))
        assert topology.mean_square_rate(again) == topology.mean_square_rate(schedule)
        assert pickle.loads(pickle.dumps(again)).law.size == schedule.size


def test_own_law():
    J = np.full((4, 4), 0.25)
    law = topology.Law.moments(0.5 * (np.eye(4) + J), lambda X: 0.5 * (X + J @ X @ J))
    mine = topology.Schedule(
        lambda k: topology.complete(4), size=4, period=None, name="mine", law=law
    )
    assert topology.mean_square_rate(mine) == pytest.approx(0.5)
    assert mine.law is law
    both = topology.Law.finite([topology.complete(4), topology.exponential(4)])
    other = topology.Law.moments(both.mean.toarray(), both.forward, both.backward)
    assert not other.is_symmetric
    np.testing.assert_allclose(other.disagreement(), both.disagreement())


def identity(X):
    return X


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: topology.expected_contraction(topology.b_connected(topology.ring(6), 2)),
         TopologyError, r"expected_contraction: the law of a step .* law=topology.Law.finite"),
        (lambda: topology.mean_square_rate(
            topology.Schedule(lambda k: topology.ring(4), size=4, period=None, name="mine")),
         TopologyError, r"a step of mine is not known; give one, as in Schedule\("),
        (lambda: topology.expected_contraction(topology.alternating_ring(6)),
         TopologyError, r"period 2.*use mean_square_rate"),
        (lambda: topology.expected_contraction(
            topology.random_digraph(8, 0.4, seed=1, weights="uniform_push")),
         TopologyError, r"rows of W that sum to 1"),
        (lambda: topology.mean_square_rate(topology.periodic(
            [topology.random_digraph(8, 0.4, seed=s, weights="uniform_push") for s in (1, 2)])),
         TopologyError, r"rows of W that sum to 1"),
        (lambda: topology.mean_square_rate(topology.random_pair(topology.ring(3001))),
         ArgumentError, r"up to size 3000; use expected_contraction"),
        (lambda: topology.mean_square_rate(
            topology.random_choice([topology.exponential(501), topology.ring(501)])),
         ArgumentError, r"up to size 500; use expected_contraction"),
        (lambda: topology.expected_contraction(topology.equidyn(3001, hops=[1])),
         ArgumentError, r"up to size 3000"),
        (lambda: topology.expected_contraction(topology.random_matching(topology.torus(5, 5))),
         TopologyError, r"more than 20000 matchings; study a smaller"),
        (lambda: topology.random_choice([]), ArgumentError, "at least 1 Topology, got none"),
        (lambda: topology.random_choice([topology.ring(4), 3]), ArgumentTypeError, r"\[1\] must"),
        (lambda: topology.random_choice([topology.ring(4), topology.ring(5)]), TopologyError,
         r"topologies\[1\] is ring of 5 of size 5"),
        (lambda: topology.random_choice([topology.ring(4)], [0.5, 0.5]), ArgumentError,
         r"must be 1 numbers, .* got shape \(2,\)"),
        (lambda: topology.random_choice([topology.ring(4)] * 2, [0.5, 0.6]), ArgumentError,
         r"sum to 1, got \[0.5, 0.6\]"),
        (lambda: topology.random_choice([topology.ring(4)] * 2, [-0.5, 1.5]), ArgumentError,
         r"at least 0"),
        (lambda: topology.random_choice([topology.ring(4)], ["half"]), ArgumentTypeError,
         r"probabilities must be numbers, got \['half'\]"),
        (lambda: topology.random_broadcast(topology.ring(4), gamma=1), ArgumentError,
         r"gamma must be at least 0 and below 1, got 1"),
        (lambda: topology.random_broadcast(topology.exponential(8)), TopologyError,
         r"random_broadcast needs an undirected graph"),
        (lambda: topology.random_one_peer(6, symmetric=True), ArgumentError, r"power of two"),
        (lambda: topology.Law.moments(np.eye(3), lambda X: X[:2]), TopologyError,
         r"forward must return an array of shape \(3, 3\)"),
        (lambda: topology.Law.moments(np.eye(3), lambda X: 0.5 * X), TopologyError,
         r"rows of some W do not sum to 1"),
        (lambda: topology.Law.moments(
            np.eye(3), lambda X: np.roll(X, (1, 1), (0, 1))), TopologyError, r"give backward too"),
        (lambda: topology.Law.moments([[1, 0], [0]], identity), TopologyError, r"rows differ"),
        (lambda: topology.Law.moments(np.eye(3), lambda X: X * math.nan), TopologyError,
         r"forward must return finite numbers, got inf or nan"),
        (lambda: topology.Law.moments(np.full((3, 3), 1 / 3), identity), TopologyError,
         r"mean must be E\[W\], and forward, .* says another"),
        (lambda: topology.random_choice(topology.ring(4)), ArgumentTypeError,
         r"must be a list of Topology, got Topology; .*static"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
