"""Law: what a random step of averaging does on average, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, final

import numpy as np
from scipy import sparse

from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology._edges import Floats, Ints, Matrix
from dectool.topology._steps import members_of
from dectool.topology._topology import Topology
from dectool.topology._validation import TOLERANCE, as_csr

Moment = Callable[[Floats], Floats]
_CHUNK = 1 << 21
"""Numbers that one array of ``Few`` may have at a time."""


@final
class Law:
    r"""The law of a random W, of which every step draws anew: its first and second moments.

    Make one with :meth:`finite` or :meth:`moments`, and give it to a ``Schedule``.

    Args:
        mean: E[W], (n, n).
        forward: Function of X, (n, n), that returns :math:`\mathbb E[W X W^T]`.
        backward: Function of X that returns :math:`\mathbb E[W^T X W]`; default ``forward``, for
            symmetric W.
        projections: Every W is symmetric with W² = W, so that :math:`\mathbb E[W^T W] =
            \mathbb E[W]`.
        rotations: To number the ranks from another one on, in a circle, changes nothing.

    Example:
        >>> from dectool import topology
        >>> law = topology.random_pair(topology.ring(4)).law
        >>> law
        <Law of W, size 4>
        >>> law.mean.toarray()[0].tolist()
        [0.75, 0.125, 0.0, 0.125]

    References:
        S. Boyd, A. Ghosh, B. Prabhakar, D. Shah, Randomized gossip algorithms, IEEE Trans. Inf.
        Theory 52(6), 2006.
    """

    def __init__(
        self,
        mean: Matrix,
        forward: Moment,
        backward: Moment | None = None,
        *,
        projections: bool = False,
        rotations: bool = False,
    ) -> None:
        self._mean, self._forward = mean, forward
        self._backward = forward if backward is None else backward
        self._symmetric = backward is None
        self._projections, self._rotations = projections, rotations

    @classmethod
    def finite(
        cls, topologies: Sequence[Topology], probabilities: Sequence[float] | None = None
    ) -> Self:
        """Return the law of one of a list of topologies, drawn with given probabilities.

        Args:
            topologies: At least one Topology, all of one size.
            probabilities: Of each, at least 0, with sum 1; default all alike.

        Raises:
            ArgumentError: The list is empty, or the probabilities do not fit it.
            ArgumentTypeError: A member is not a Topology.
            TopologyError: The sizes differ.

        Example:
            >>> from dectool import topology
            >>> law = topology.Law.finite([topology.ring(4), topology.star(4)], [0.75, 0.25])
            >>> round(float(law.mean[0, 2]), 12)
            0.0625
        """
        members = members_of(topologies)
        chances = probabilities_of(members, probabilities)
        few = Few.of(members[0].size, [member.W for member in members], chances)
        return cls(few.mean, few.forward, None if few.symmetric else few.backward)

    @classmethod
    def moments(cls, mean: Any, forward: Moment, backward: Moment | None = None) -> Self:
        r"""Return the law that has given moments.

        Args:
            mean: E[W], (n, n), any kind of matrix.
            forward: Function of a symmetric X, (n, n), that returns :math:`\mathbb E[W X W^T]`.
            backward: Function of X that returns :math:`\mathbb E[W^T X W]`; default ``forward``,
                for symmetric W.

        Raises:
            ArgumentTypeError: ``mean`` is no matrix of numbers.
            TopologyError: The mean is not square, a function returns another shape or no numbers,
                or the moments cannot be of one law of matrices whose rows sum to 1: forward(11ᵀ)
                is not 11ᵀ, backward is not the adjoint of forward, or the mean is another.

        Example:
            >>> import numpy as np
            >>> from dectool import topology
            >>> J = np.full((4, 4), 0.25)
            >>> half = topology.Law.moments(0.5 * (np.eye(4) + J), lambda X: 0.5 * (X + J @ X @ J))
            >>> coin = topology.Schedule(
            ...     lambda k: topology.from_matrix(np.random.default_rng(k).choice([np.eye(4), J]),
            ...                                    require_connected=False),
            ...     size=4, period=None, name="all or nothing", law=half)
            >>> topology.expected_contraction(coin)
            0.5
        """
        law = cls(as_csr(mean), forward, backward)
        n = law.size
        rng = np.random.default_rng(1911)
        X, Y = (np.asarray(Z + Z.T) for Z in rng.standard_normal((2, n, n)))
        ones = np.ones((n, n))
        images = law.forward(ones), law.forward(X), law.backward(Y)
        for what, image in zip(("forward", "forward", "backward"), images, strict=True):
            if np.shape(image) != (n, n):
                raise TopologyError(
                    f"{what} must return an array of shape {(n, n)}, as X has, got shape "
                    f"{np.shape(image)}"
                )
            if not np.isfinite(image).all():
                raise TopologyError(f"{what} must return finite numbers, got inf or nan")
        if np.abs(images[0] - ones).max() > TOLERANCE:
            raise TopologyError(
                "forward(X) must be E[W X Wᵀ], and forward of a matrix of ones is off by "
                f"{np.abs(images[0] - ones).max():.3g} from it: so rows of some W do not sum to 1"
            )
        apart = abs(float(np.vdot(Y, images[1]) - np.vdot(images[2], X)))
        if apart > TOLERANCE * float(np.linalg.norm(X) * np.linalg.norm(Y)):
            raise TopologyError(
                "backward(X) must be E[Wᵀ X W], but <Y, forward(X)> and <backward(Y), X> differ; "
                "give backward too if some W is not symmetric"
            )
        # As rows of W sum to 1, E[W (x1ᵀ + 1xᵀ) Wᵀ] = (E[W] x) 1ᵀ + 1 (E[W] x)ᵀ.
        x = rng.standard_normal(n)
        moved = np.asarray(law.mean @ x)
        off = np.abs(law.forward(np.add.outer(x, x)) - np.add.outer(moved, moved)).max()
        if not off <= TOLERANCE:
            raise TopologyError(
                "mean must be E[W], and forward, which is E[W X Wᵀ], says another: for "
                f"X = x1ᵀ + 1xᵀ they differ by {off:.3g}; one of them is wrong"
            )
        return law

    @property
    def size(self) -> int:
        """Number of ranks n."""
        return int(self._mean.shape[0])

    @property
    def mean(self) -> Matrix:
        """E[W], (n, n) CSR."""
        return self._mean

    @property
    def is_symmetric(self) -> bool:
        """Every W is symmetric, so that forward and backward are the same."""
        return self._symmetric

    @property
    def has_projections(self) -> bool:
        """Every W is symmetric with W² = W, as where pairs of ranks average."""
        return self._projections

    @property
    def has_rotations(self) -> bool:
        """To number the ranks from another one on, in a circle, leaves the law as it is."""
        return self._rotations

    def __repr__(self) -> str:
        return f"<Law of W, size {self.size}>"

    def forward(self, X: Floats) -> Floats:
        """Return E[W X Wᵀ]: second moments X of the ranks' values after one more step, (n, n)."""
        return self._forward(X)

    def backward(self, X: Floats) -> Floats:
        """Return E[Wᵀ X W]: the mean of xᵀXx after a step is that of this before it, (n, n)."""
        return self._backward(X)

    def second_moment(self) -> Floats:
        """Return E[WᵀW], (n, n).

        Example:
            >>> from dectool import topology
            >>> topology.random_pair(topology.complete(3)).law.second_moment()[0].round(12).tolist()
            [0.666666666667, 0.166666666667, 0.166666666667]
        """
        return self.backward(np.eye(self.size))

    def disagreement(self) -> Floats:
        """Return M = E[Wᵀ(I - J)W], (n, n): xᵀMx is the mean squared distance after a step from x.

        Example:
            >>> from dectool import topology
            >>> M = topology.random_pair(topology.complete(3)).law.disagreement()
            >>> M[0].round(12).tolist()
            [0.333333333333, -0.166666666667, -0.166666666667]
        """
        return self.backward(np.eye(self.size) - 1.0 / self.size)


def probabilities_of(
    topologies: tuple[Topology, ...], probabilities: Sequence[float] | None
) -> Floats:
    """Return the probability of each topology, checked."""
    number = len(topologies)
    if probabilities is None:
        return np.full(number, 1.0 / number)
    try:
        chances = np.asarray(probabilities, np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"probabilities must be numbers, got {probabilities!r}") from None
    if chances.shape != (number,):
        raise ArgumentError(
            f"probabilities must be {number} numbers, one for each topology, got shape "
            f"{chances.shape}"
        )
    if not (chances >= 0).all() or abs(chances.sum() - 1.0) > TOLERANCE:
        raise ArgumentError(
            f"probabilities must be at least 0 and sum to 1, got {chances.tolist()}, which sum to "
            f"{chances.sum():.10g}"
        )
    return np.asarray(chances / chances.sum())


@dataclass(frozen=True)
class _Same:
    """Changes W - I of as many rows and columns each: ``change[m]`` at ``rows[m], columns[m]``."""

    chances: Floats
    rows: Ints
    columns: Ints
    change: Floats

    def turned(self) -> _Same:
        return _Same(self.chances, self.columns, self.rows, self.change.transpose(0, 2, 1))

    def add(self, total: Floats, X: Floats) -> None:
        """Add E[D X Dᵀ] to ``total``, of the changes D."""
        for part in self._parts():
            rows, columns = self.rows[part], self.columns[part]
            seen = X[columns[:, :, None], columns[:, None, :]]
            changed = self.change[part] @ seen @ self.change[part].transpose(0, 2, 1)
            np.add.at(
                total,
                (rows[:, :, None], rows[:, None, :]),
                self.chances[part, None, None] * changed,
            )

    def _parts(self) -> Iterator[slice]:
        number, width = len(self.chances), max(self.rows.shape[1], self.columns.shape[1])
        step = max(1, _CHUNK // max(1, width * width))
        yield from (slice(start, start + step) for start in range(0, number, step))


@final
@dataclass(frozen=True)
class Few:
    """The moments of a W drawn from a finite list; what is left of probability 1 is W = I.

    With D = W - I, :math:`W X W^T = X + D X + X D^T + D X D^T`, where the last term costs little
    if D has few rows.
    """

    size: int
    small: tuple[_Same, ...]
    large: tuple[tuple[float, Matrix], ...]
    symmetric: bool

    @classmethod
    def of(cls, n: int, matrices: Sequence[Matrix], chances: Floats) -> Self:
        """Return the law of matrices, each of which changes few rows or many."""
        groups: dict[tuple[int, int], list[tuple[float, Ints, Ints, Floats]]] = {}
        large = []
        identity = sparse.eye_array(n, format="csr")
        symmetric = True
        for W, chance in zip(matrices, chances.tolist(), strict=True):
            change: Matrix = (W - identity).tocsr()
            change.eliminate_zeros()
            symmetric = symmetric and bool(abs(change - change.T).max() <= TOLERANCE)
            rows, columns = (np.unique(part).astype(np.int64) for part in change.nonzero())
            if 4 * max(len(rows), len(columns)) > n:
                large.append((chance, change))
                continue
            block = change[rows][:, columns].toarray()
            group = groups.setdefault((len(rows), len(columns)), [])
            group.append((chance, rows, columns, block))
        small = tuple(
            _Same(*(np.array(part) for part in zip(*group, strict=True)))
            for shape, group in groups.items()
            if shape != (0, 0)
        )
        return cls(n, small, tuple(large), symmetric)

    @classmethod
    def pairs(cls, n: int, first: Ints, second: Ints, chances: Floats) -> Self:
        """Return the law of one pair of ranks that averages, pair m with ``chances[m]``."""
        ends = np.stack([first, second], axis=1)
        change = np.tile(np.array([[-0.5, 0.5], [0.5, -0.5]]), (len(chances), 1, 1))
        return cls(n, (_Same(chances, ends, ends, change),), (), True)

    @cached_property
    def change(self) -> Matrix:
        """E[W] - I."""
        n = self.size
        entries, places = [np.zeros(0)], [np.zeros((2, 0), np.int64)]
        for same in self.small:
            weighed = same.chances[:, None, None] * same.change
            grid = np.broadcast_arrays(same.rows[:, :, None], same.columns[:, None, :])
            entries.append(weighed.ravel())
            places.append(np.stack([part.ravel() for part in grid]))
        at = np.concatenate(places, axis=1)
        total = sparse.coo_array((np.concatenate(entries), (at[0], at[1])), shape=(n, n)).tocsr()
        for chance, change in self.large:
            total = total + chance * change
        return total.tocsr()

    @property
    def mean(self) -> Matrix:
        """E[W]."""
        return (self.change + sparse.eye_array(self.size)).tocsr()

    def forward(self, X: Floats) -> Floats:
        """Return E[W X Wᵀ]."""
        total = X + self.change @ X + (self.change @ X.T).T
        for same in self.small:
            same.add(total, X)
        for chance, change in self.large:
            total += chance * (change @ (change @ X).T).T
        return np.asarray(total)

    def backward(self, X: Floats) -> Floats:
        """Return E[Wᵀ X W]."""
        back: Matrix = self.change.T.tocsr()
        total = X + back @ X + (back @ X.T).T
        for same in self.small:
            same.turned().add(total, X)
        for chance, change in self.large:
            turned = change.T
            total += chance * (turned @ (turned @ X).T).T
        return np.asarray(total)
