"""Which rank holds which samples.

A partitioner is called with the labels of all samples and the number of ranks, and returns one
array of sample indices per rank, each sample exactly once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dectool._text import listing
from dectool.errors import ArgumentError
from dectool.problems._arrays import positive_int, real_number

__all__ = ["ByClass", "Contiguous", "Dirichlet", "Partitioner", "Shuffled"]

Parts: TypeAlias = list[NDArray[np.intp]]


class Partitioner(ABC):
    """Cuts m samples into n shards, one per rank, each sample exactly once."""

    allow_empty: bool

    def __call__(self, labels: ArrayLike, n: int) -> Parts:
        """Return one array of sample indices per rank.

        Args:
            labels: One label per sample, (m,).
            n: Number of ranks.

        Returns:
            A list of n index arrays that together hold 0 to m - 1 once each.

        Raises:
            ArgumentError: n is below 1 or above the number of samples, or a shard is too small
                and ``allow_empty`` is not set.

        Example:
            >>> Contiguous()([0, 0, 1], 2)
            [array([0, 1]), array([2])]
        """
        y = np.asarray(labels)
        if y.ndim != 1 or y.size == 0:
            raise ArgumentError(f"labels has shape {y.shape}; it must be (m,) with m >= 1")
        n = positive_int(n, "n")
        if n > y.size and not self.allow_empty:
            raise ArgumentError(
                f"n={n} ranks but only {y.size} samples: every rank needs one; "
                "use fewer ranks, or allow_empty=True"
            )
        parts = self._split(y, n)
        self._check_sizes(parts)
        return parts

    @abstractmethod
    def _split(self, labels: NDArray[Any], n: int) -> Parts:
        """Return the shards; their sizes are checked afterwards."""

    def _fewest(self) -> int:
        return 1

    def _advice(self) -> str:
        return "use fewer ranks"

    def _check_sizes(self, parts: Parts) -> None:
        fewest = self._fewest()
        small = [rank for rank, part in enumerate(parts) if part.size < fewest]
        if not small or self.allow_empty:
            return
        plural = "s" if len(small) > 1 else ""
        raise ArgumentError(
            f"{self!r} leaves rank{plural} {listing(small)} with fewer than {fewest} sample"
            f"{'s' if fewest > 1 else ''} (of {len(parts)} ranks); {self._advice()}, "
            "or allow_empty=True"
        )


@final
@dataclass(frozen=True)
class Contiguous(Partitioner):
    """Blocks in the order of the data, sizes equal to within one, the larger ones first.

    Args:
        allow_empty: Let ranks have no sample.

    Example:
        >>> [part.tolist() for part in Contiguous()([0, 0, 0, 1, 1], 2)]
        [[0, 1, 2], [3, 4]]
    """

    _: KW_ONLY
    allow_empty: bool = False

    def _split(self, labels: NDArray[Any], n: int) -> Parts:
        return list(np.array_split(np.arange(labels.size), n))


@final
@dataclass(frozen=True)
class Shuffled(Partitioner):
    """Equal blocks of a random order: every rank sees the same distribution.

    Args:
        seed: Seed of the permutation.
        allow_empty: Let ranks have no sample.

    Example:
        >>> sorted(np.concatenate(Shuffled(seed=1)([0, 0, 0, 1, 1], 2)).tolist())
        [0, 1, 2, 3, 4]
    """

    seed: int = 0
    _: KW_ONLY
    allow_empty: bool = False

    def _split(self, labels: NDArray[Any], n: int) -> Parts:
        order = np.random.default_rng(self.seed).permutation(labels.size)
        return [np.sort(part) for part in np.array_split(order, n)]


@final
@dataclass(frozen=True)
class ByClass(Partitioner):
    """Every rank sees a few classes only.

    With C classes and c classes per rank, rank i holds classes i c to i c + c - 1 modulo C, and
    a class is cut evenly among the ranks that hold it.

    Args:
        classes_per_rank: Number c of classes per rank; None for the fewest that cover all
            classes, which is C / n rounded up.
        allow_empty: Let ranks have no sample.

    Example:
        >>> [part.tolist() for part in ByClass()([0, 1, 0, 1], 2)]
        [[0, 2], [1, 3]]
    """

    classes_per_rank: int | None = None
    _: KW_ONLY
    allow_empty: bool = False

    def __post_init__(self) -> None:
        if self.classes_per_rank is not None:
            positive_int(self.classes_per_rank, "classes_per_rank")

    def _split(self, labels: NDArray[Any], n: int) -> Parts:
        inverse, count = _class_indices(labels, "ByClass")
        least = -(-count // n)
        each = least if self.classes_per_rank is None else self.classes_per_rank
        if not least <= each <= count:
            raise ArgumentError(
                f"classes_per_rank={each} with {count} classes on {n} ranks must be from {least}, "
                f"or some class belongs to no rank, to {count}"
            )
        holders: list[list[int]] = [[] for _ in range(count)]
        for rank in range(n):
            for j in range(each):
                holders[(rank * each + j) % count].append(rank)
        pieces: list[list[NDArray[np.intp]]] = [[] for _ in range(n)]
        for label, ranks in enumerate(holders):
            cut = np.array_split(np.flatnonzero(inverse == label), len(ranks))
            for rank, piece in zip(ranks, cut, strict=True):
                pieces[rank].append(piece)
        return [np.sort(np.concatenate(mine)) for mine in pieces]

    def _advice(self) -> str:
        return "use fewer ranks or more classes_per_rank"


@final
@dataclass(frozen=True)
class Dirichlet(Partitioner):
    r"""Each class is spread over the ranks in random shares.

    For every class the shares are drawn from a Dirichlet distribution with all parameters
    :math:`\alpha`: large values give every rank the same mixture, small ones give each class to
    few ranks. Shard sizes get very unequal too, so choose the ``objective`` of a problem
    knowingly.

    Args:
        alpha: Concentration, above 0.
        seed: Seed of the shares and of the order within a class.
        min_samples: Fewest samples that a rank may get; nothing is redrawn to reach it.
        allow_empty: Let ranks have fewer, or none.

    Example:
        >>> parts = Dirichlet(alpha=0.5, seed=3)(np.arange(100) % 2, 4)
        >>> sum(part.size for part in parts)
        100

    References:
        T.-M. H. Hsu, H. Qi, M. Brown, Measuring the effects of non-identical data distribution
        for federated visual classification, arXiv:1909.06335, 2019.
    """

    alpha: float = 1.0
    seed: int = 0
    _: KW_ONLY
    min_samples: int = 1
    allow_empty: bool = False

    def __post_init__(self) -> None:
        real_number(self.alpha, "alpha", strict=True)
        positive_int(self.min_samples, "min_samples", least=0)

    def _split(self, labels: NDArray[Any], n: int) -> Parts:
        inverse, count = _class_indices(labels, "Dirichlet")
        rng = np.random.default_rng(self.seed)
        pieces: list[list[NDArray[np.intp]]] = [[] for _ in range(n)]
        for label in range(count):
            members = rng.permutation(np.flatnonzero(inverse == label))
            shares = rng.dirichlet(np.full(n, self.alpha))
            cuts = (np.cumsum(shares)[:-1] * members.size).astype(np.intp)
            for mine, piece in zip(pieces, np.split(members, cuts), strict=True):
                mine.append(piece)
        return [np.sort(np.concatenate(mine)) for mine in pieces]

    def _fewest(self) -> int:
        return self.min_samples

    def _advice(self) -> str:
        return "use a larger alpha, another seed or fewer ranks"


def _class_indices(labels: NDArray[Any], name: str) -> tuple[NDArray[np.intp], int]:
    if labels.dtype.kind == "f" and not (labels == np.floor(labels)).all():
        raise ArgumentError(
            f"{name} needs class labels, but labels holds {labels[labels != np.floor(labels)][0]}; "
            "use Contiguous or Shuffled for a regression target"
        )
    classes, inverse = np.unique(labels, return_inverse=True)
    return inverse, int(classes.size)
