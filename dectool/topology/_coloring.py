"""Edge coloring: the edges of a graph as few matchings."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dectool.topology._edges import Ints


def matchings(n: int, first: Ints, second: Ints) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the edges {first[e], second[e]} as at most d_max + 1 matchings, d_max if bipartite.

    Exchanges of two colors on paths suffice for bipartite graphs (Kőnig) and some others, and else
    fans do: J. Misra, D. Gries, A constructive proof of Vizing's theorem, Inf. Processing Letters
    41, 1992.
    """
    edges = list(zip(first.tolist(), second.tolist(), strict=True))
    colors = int(np.bincount(np.concatenate([first, second]), minlength=n).max())
    coloring = _Coloring(n, colors)
    if not all(coloring.add_by_path(u, v) for u, v in edges):
        coloring = _Coloring(n, colors + 1)
        for u, v in edges:
            coloring.add_by_fan(u, v)
    classes: list[list[tuple[int, int]]] = [[] for _ in range(colors + 1)]
    for u, row in enumerate(coloring.other):
        for color, v in enumerate(row):
            if u < v:
                classes[color].append((u, v))
    return tuple(tuple(pairs) for pairs in classes if pairs)


class _Coloring:
    """``other[u][c]`` is the rank that u's edge of color c leads to, -1 if it has none."""

    def __init__(self, n: int, colors: int) -> None:
        self.other = [[-1] * colors for _ in range(n)]

    def add_by_path(self, u: int, v: int) -> bool:
        """Color {u, v} if one exchange of colors on a path from u is enough; say whether it was."""
        last = self.other[v].index(-1)
        self._swap(u, self.other[u].index(-1), last)
        if self.other[v][last] >= 0:
            return False
        self._set(u, v, last)
        return True

    def add_by_fan(self, u: int, v: int) -> None:
        """Color {u, v}: free a color on a path, then hand colors on around u."""
        fan = self._fan(u, v)
        last = self.other[fan[-1]].index(-1)
        self._swap(u, self.other[u].index(-1), last)
        stop = self._first_without(u, fan, last)
        for before, after in pairwise(fan[: stop + 1]):
            color = self.other[u].index(after)
            self._clear(u, after, color)
            self._set(u, before, color)
        self._set(u, fan[stop], last)

    def _fan(self, u: int, v: int) -> list[int]:
        """Return v and more neighbors, each joined to u in a color that the one before lacks."""
        fan = [v]
        rest = {w: color for color, w in enumerate(self.other[u]) if w >= 0}
        while True:
            end = self.other[fan[-1]]
            found = next((w for w, color in rest.items() if end[color] < 0), None)
            if found is None:
                return fan
            fan.append(found)
            del rest[found]

    def _swap(self, u: int, mine: int, last: int) -> None:
        """Exchange two colors on the path that leaves u in one of them, so that u lacks it."""
        path, color = [], last
        while (v := self.other[u][color]) >= 0:
            path.append((u, v, color))
            u, color = v, mine + last - color
        for step in path:
            self._clear(*step)
        for a, b, color in path:
            self._set(a, b, mine + last - color)

    def _first_without(self, u: int, fan: list[int], color: int) -> int:
        """Return the first place of the fan without the color, where it is still a fan."""
        for at, (w, after) in enumerate(pairwise(fan)):
            if self.other[w][color] < 0:
                return at
            if self.other[w][self.other[u].index(after)] >= 0:
                break
        return len(fan) - 1

    def _set(self, u: int, v: int, color: int) -> None:
        self.other[u][color], self.other[v][color] = v, u

    def _clear(self, u: int, v: int, color: int) -> None:
        self.other[u][color] = self.other[v][color] = -1
