"""A cluster: processes that stay, so that many runs pay for their start once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, final

from dectool._hosts import check_slots, checked_hosts, checked_launcher, slots_of
from dectool._optional import require
from dectool._text import nearest
from dectool.communicator import Outcome, Settings
from dectool.errors import (
    ArgumentError,
    ArgumentTypeError,
    BackendError,
    UnsupportedOperation,
)

if TYPE_CHECKING:
    from dectool.backends.mpi import Processes
    from dectool.run import Result

BACKENDS = ("stacked", "sim", "mpi")
TIMEOUT = 300.0
STALL_TIMEOUT = 30.0
_PLANNED = {"nccl": "real processes with GPUs"}


@final
class Cluster:
    """Processes for many runs; ``with`` starts them, and the end of the block ends them.

    A run may use fewer ranks than there are processes. An error of a program is raised, and the
    processes stay; if one of them died or did not stop, the next run starts new ones.

    Args:
        n: Number of processes; default: as many as ``hosts`` take.
        backend: "mpi".
        env: Further environment variables of the processes.
        hosts: Where they run; see :func:`dectool.run`.
        launcher: The command that reaches hosts; see :func:`dectool.run`.

    Example:
        >>> import dectool
        >>> with dectool.Cluster(n=4, backend="mpi") as cluster:        # doctest: +SKIP
        ...     first = cluster.run(program)
        ...     second = dectool.run(program, n=2, backend=cluster)
        ...     history = dectool.solve(algorithm, problem, topology=graph, steps=100,
        ...                             backend=cluster)
        >>> with dectool.Cluster(hosts=["first:2", "second:2"]) as cluster:  # doctest: +SKIP
        ...     result = cluster.run(program)
    """

    def __init__(
        self,
        n: int | None = None,
        *,
        backend: str = "mpi",
        env: Mapping[str, str] | None = None,
        hosts: Sequence[str] | None = None,
        launcher: str | Sequence[str] | None = None,
    ) -> None:
        check_backend(backend)
        if backend != "mpi":
            raise UnsupportedOperation(
                f"Cluster(backend={backend!r}): a simulation has no processes to keep; "
                f"use run(..., backend={backend!r}), or Cluster(backend='mpi')"
            )
        self._hosts = checked_hosts(hosts)
        self._launcher = checked_launcher(launcher, self._hosts)
        if n is None and self._hosts:
            n = slots_of(self._hosts)
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ArgumentError(f"n={n!r} must be an integer, at least 1, or hosts= be given")
        check_slots(n, self._hosts)
        self.n = n
        self.backend = backend
        self._env = checked_variables(env)
        self._open = False
        self._processes: Processes | None = None

    def __enter__(self) -> Self:
        """Start the processes."""
        self._open = True
        self._started()
        return self

    def __exit__(self, *error: object) -> None:
        """End the processes."""
        self._open = False
        if self._processes is not None:
            self._processes.close()

    def __repr__(self) -> str:
        where = f" on {', '.join(map(str, self._hosts))}" if self._hosts else ""
        return f"<Cluster of {self.n} processes{where}, {self.backend}>"

    def run(self, program: Callable[..., Any], n: int | None = None, **options: Any) -> Result:
        """Run a program; see :func:`dectool.run`.

        Args:
            program: A function of a communicator.
            n: Number of ranks; default: the size of ``topology``, else all.
            options: Further arguments of :func:`dectool.run`.
        """
        from dectool.run import run

        return run(program, n, backend=self, **options)

    def execute(
        self, program: Callable[..., Any], args: Sequence[Any], settings: Settings
    ) -> Outcome:
        """Run a program whose settings are checked; :func:`dectool.run` calls this.

        Raises:
            BackendError: The cluster is closed, or a process died.
            ArgumentError: There are fewer processes than ranks.
        """
        if not self._open:
            raise BackendError(
                "the cluster is closed; use it inside of: with dectool.Cluster(...) as cluster"
            )
        if settings.size > self.n:
            raise ArgumentError(
                f"n={settings.size}, but the cluster has {self.n} processes; "
                f"open Cluster(n={settings.size})"
            )
        if settings.env:
            raise ArgumentError(
                "env= comes too late for processes that run; give it to Cluster(env=...)"
            )
        processes = self._started()
        try:
            return processes.run(program, args, settings)
        except BaseException as error:
            if not processes.alive:
                error.add_note(
                    "the processes of the cluster were ended; the next run starts new ones"
                )
            raise

    def _started(self) -> Processes:
        require("mpi4py", extra="mpi", purpose="backend 'mpi'")
        require("cloudpickle", extra="mpi", purpose="backend 'mpi'")
        from dectool.backends.mpi import Processes, inside_job

        if inside_job():
            raise BackendError(
                "a Cluster starts processes, and mpiexec has already started these; use "
                "run(..., backend='mpi'), which joins them"
            )
        if self._processes is None or not self._processes.alive:
            self._processes = Processes(self.n, self._env, self._hosts, self._launcher)
        return self._processes


def check_backend(backend: Any) -> None:
    """Refuse what is no backend.

    Raises:
        ArgumentError: Nothing has this name.
        UnsupportedOperation: It is planned.
    """
    if backend in _PLANNED:
        raise UnsupportedOperation(
            f"backend {backend!r} ({_PLANNED[backend]}) is not part of this version; "
            f"use one of {', '.join(map(repr, BACKENDS))}"
        )
    if backend not in BACKENDS:
        raise ArgumentError(f"backend={backend!r} is unknown; {nearest(str(backend), BACKENDS)}")


def checked_seconds(name: str, seconds: Any) -> float:
    """Return a limit of waiting.

    Raises:
        ArgumentTypeError: It is no number.
        ArgumentError: It is not above 0.
    """
    if isinstance(seconds, (bool, str)) or not hasattr(seconds, "__float__"):
        raise ArgumentTypeError(f"{name} is {seconds!r}; it must be a number of seconds")
    if math.isnan(seconds) or seconds <= 0.0:
        raise ArgumentError(f"{name}={seconds} must be above 0 seconds; inf is for no limit")
    return float(seconds)


def checked_variables(env: Any) -> dict[str, str]:
    """Return environment variables.

    Raises:
        ArgumentTypeError: They are no mapping of strings to strings.
    """
    if env is None:
        return {}
    if not isinstance(env, Mapping):
        raise ArgumentTypeError(f"env is {env!r}; give a mapping, such as {{'NAME': 'value'}}")
    for name, value in env.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise ArgumentTypeError(
                f"env[{name!r}] is {value!r}; names and values of variables must be strings"
            )
    return dict(env)
