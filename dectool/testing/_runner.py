"""How the conformance suite starts a program: the one thing that a backend must give it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, final

import dectool
from dectool.topology import Schedule, Topology


class Runner(Protocol):
    """Runs a program on a backend; a third party's backend passes one to the checks.

    Attributes:
        unsupported: Names of the communicator operations that the backend refuses with
            :class:`dectool.errors.UnsupportedOperation`. Checks that need one of them verify the
            refusal and are skipped.
    """

    unsupported: Collection[str]

    def __call__(
        self,
        program: Callable[[Any], Any],
        n: int,
        *,
        topology: Topology | Schedule | None = None,
        ranks_per_node: int = 1,
        seed: int = 0,
    ) -> Sequence[Any]:
        """Run ``program(comm)`` on ``n`` ranks; return what it returned on each.

        Args:
            program: Function of a communicator.
            n: Number of ranks.
            topology: Default topology, or a schedule whose step 0 is the default.
            ranks_per_node: Ranks on each node, placed in blocks.
            seed: Seed of ``comm.rng``.
        """
        ...


@final
class BackendRunner:
    """The runner of one of dectool's own backends, by :func:`dectool.run`.

    Args:
        backend: Name of the backend.
        unsupported: See :class:`Runner`.
        options: Further arguments of ``run``, such as ``network=``.

    Example:
        >>> runner = BackendRunner("sim")
        >>> list(runner(lambda comm: comm.rank, 3))
        [0, 1, 2]
    """

    def __init__(self, backend: str, unsupported: Collection[str] = (), **options: Any) -> None:
        self.backend = backend
        self.unsupported = frozenset(unsupported)
        self._options = options

    def __repr__(self) -> str:
        return f"BackendRunner({self.backend!r})"

    def __call__(
        self,
        program: Callable[[Any], Any],
        n: int,
        *,
        topology: Topology | Schedule | None = None,
        ranks_per_node: int = 1,
        seed: int = 0,
    ) -> Sequence[Any]:
        """Run the program; return its values."""
        return dectool.run(
            program,
            n,
            backend=self.backend,
            topology=topology,
            ranks_per_node=ranks_per_node,
            seed=seed,
            **self._options,
        ).values


SIM = BackendRunner("sim")
"""The discrete-event simulator."""

STACKED = BackendRunner(
    "stacked",
    unsupported=(
        "exchange",
        "irecv",
        "isend",
        "node",
        "one-sided sendrecv",
        "peers_across_nodes",
        "split",
        "window",
    ),
)
"""All ranks as rows of one array, which has no messages between single ranks and no groups."""


def apply(
    runner: Runner,
    operation: str | Callable[..., Any],
    xs: Sequence[Any],
    *arguments: Any,
    topology: Topology | Schedule | None = None,
    ranks_per_node: int = 1,
) -> Sequence[Any]:
    """Run an operation of the communicator on ``xs[i]`` at rank i; return its values.

    Args:
        runner: What to run on.
        operation: Name of the operation, or a function of a communicator and ``x``.
        xs: One value for each rank.
        arguments: Further arguments of the operation.
        topology: See :class:`Runner`.
        ranks_per_node: See :class:`Runner`.
    """

    def program(comm: Any) -> Any:
        x = comm.per_rank(xs.__getitem__)
        if isinstance(operation, str):
            return getattr(comm, operation)(x, *arguments)
        return operation(comm, x, *arguments)

    return runner(program, len(xs), topology=topology, ranks_per_node=ranks_per_node)
