"""The handle of an operation that goes on while the program does something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

if TYPE_CHECKING:
    from dectool.communicator._core import CommunicatorCore, Pending

T = TypeVar("T")


@final
class Request(Generic[T]):
    """A non-blocking operation under way, as in MPI.

    Returned by every operation whose name starts with ``i``. The result may be asked for any
    number of times once it is there.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import topology
        >>> def program(comm):
        ...     request = comm.ineighbor_allreduce(np.array([float(comm.rank)]))
        ...     comm.elapse(1.0)                      # compute while the messages travel
        ...     return request.wait()
        >>> float(dectool.run(program, n=3, backend="sim", topology=topology.ring(3)).values[0][0])
        1.0
    """

    __slots__ = ("_comm", "_finish", "_pending", "_result")

    def __init__(
        self,
        comm: CommunicatorCore,
        pending: Sequence[Pending],
        finish: Callable[[Sequence[Any]], T],
    ) -> None:
        self._comm = comm
        self._pending: Sequence[Pending] | None = pending
        self._finish: Callable[[Sequence[Any]], T] | None = finish
        self._result: T | None = None

    def wait(self) -> T:
        """Block until the operation is complete and return its result."""
        if self._finish is not None:
            parcels = self._comm._await(self._pending or ())
            finish, self._finish, self._pending = self._finish, None, None
            self._result = finish(parcels)
        return self._result  # type: ignore[return-value]

    def test(self) -> bool:
        """Tell, without blocking, whether the operation is complete.

        Raises:
            LivelockError: Polled again and again (10,000 times) without letting time pass in
                between; a simulated clock moves only by ``comm.elapse`` or a blocking call.
        """
        if self._finish is None:
            return True
        if not self._comm._ready(self._pending or ()):
            return False
        self.wait()
        return True

    @property
    def result(self) -> T:
        """The result; waits for it if need be."""
        return self.wait()


def together(
    comm: CommunicatorCore, requests: Sequence[Request[Any]], finish: Callable[[list[Any]], T]
) -> Request[T]:
    """Return one request for several that nobody has waited for; ``finish`` gets their results."""
    parts = [tuple(request._pending or ()) for request in requests]

    def finished(contents: Sequence[Any]) -> T:
        results, start = [], 0
        for request, part in zip(requests, parts, strict=True):
            assert request._finish is not None
            results.append(request._finish(contents[start : start + len(part)]))
            start += len(part)
        return finish(results)

    return Request(comm, [one for part in parts for one in part], finished)
