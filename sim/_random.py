"""The random streams of all ranks together."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool.communicator import generator


class StackedGenerator:
    """The generators of all ranks, drawing together: results have the rank axis in front.

    Any method of ``numpy.random.Generator`` may be called; an argument that is an array with one
    entry per rank is handed out entry by entry.

    Example:
        >>> rng = StackedGenerator(seed=0, size=3, purpose="noise")
        >>> rng.normal(size=2).shape
        (3, 2)
    """

    def __init__(self, seed: int, size: int, purpose: str, number: int | None = None) -> None:
        self._generators = [generator(seed, rank, purpose, number) for rank in range(size)]

    def only(self, ranks: Any) -> StackedGenerator:
        """Return the generators of some ranks."""
        chosen = object.__new__(StackedGenerator)
        chosen._generators = [self._generators[rank] for rank in ranks]
        return chosen

    def of(self, rank: int) -> np.random.Generator:
        """Return the generator of one rank."""
        return self._generators[rank]

    def __getattr__(self, name: str) -> Any:
        methods = [getattr(one, name) for one in self._generators]
        size = len(methods)

        def draw(*args: Any, **kwargs: Any) -> Any:
            def share(value: Any, rank: int) -> Any:
                split = isinstance(value, np.ndarray) and value.ndim and len(value) == size
                return value[rank] if split else value

            return np.stack(
                [
                    np.asarray(
                        method(
                            *(share(value, rank) for value in args),
                            **{key: share(value, rank) for key, value in kwargs.items()},
                        )
                    )
                    for rank, method in enumerate(methods)
                ]
            )

        return draw
