"""The ways in which a window reaches a neighbour, each forced on ranks of one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dectool
from dectool.testing import assert_same_bits

WAYS = ("memory", "messages", "without threads", "without C")


@contextmanager
def reached(comm: Any, way: str) -> Iterator[None]:
    """Treat every other rank as one of another node, or do without the C extension."""
    if comm.backend != "mpi" or way == "memory":
        comm.barrier()
        yield
        return
    from dectool.backends.mpi import _window, _window_cells

    before = _window_cells.make_line
    comm._engine.boards.node = {}
    if way == "without threads":
        comm._engine.windows._threads = False
    if way != "without C":
        comm._engine.boards.near = frozenset({comm.rank})
    else:
        _window.make_line = _window_cells.make_line = None
    comm.barrier()
    try:
        yield
    finally:
        _window.make_line = _window_cells.make_line = before


def by_way(program: Callable[..., Any], way: str) -> Callable[..., Any]:
    """Return a program whose windows reach their neighbours in one way."""

    def on_the_way(comm: Any, *args: Any) -> Any:
        with reached(comm, way):
            return program(comm, *args)

    return on_the_way


def same_as_sim(
    cluster: dectool.Cluster, program: Callable[..., Any], n: int, way: str, **options: Any
) -> list[Any]:
    """Compare every value of every rank with the simulator's, and what was sent."""
    expected = dectool.run(by_way(program, way), n=n, backend="sim", **options)
    got = cluster.run(by_way(program, way), n=n, timeout=20.0, **options)
    for rank in range(n):
        assert_same_bits(got.values[rank], expected.values[rank], f"rank {rank}, {way}")
    assert (got.messages, got.bytes) == (expected.messages, expected.bytes)
    return list(got.values)
