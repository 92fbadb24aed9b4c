"""One-sided windows: values that neighbours write and read without the owner's taking part."""

from __future__ import annotations

from types import TracebackType
from typing import Self, final

from dectool.communicator._window_meeting import WindowMeeting
from dectool.communicator._window_reading import WindowReading
from dectool.communicator._window_writing import WindowWriting


@final
class Window(WindowWriting, WindowReading, WindowMeeting):
    """A value of this rank, and a slot for each in-neighbour, which that neighbour writes.

    Made by :meth:`Communicator.window`. Neighbours write slots and read values at any time, while
    the owner computes; the owner looks at what has come when it calls :meth:`update` or
    :meth:`collect`. A value is always read and written as a whole.

    A window keeps the topology it was made with, whatever ``comm.topology`` becomes.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import topology
        >>> def program(comm):
        ...     with comm.window(np.array([float(comm.rank)]), name="x") as win:
        ...         win.put()
        ...         win.fence()
        ...         return win.update()
        >>> dectool.run(program, topology=topology.complete(4), backend="sim").values[0]
        array([1.5])
    """

    def free(self) -> None:
        """Let go of the window; what arrives from now on is dropped. Nobody is waited for."""
        if self._open:
            self._open = False
            self._comm._windows.pop(self.name, None)
            self._store.close()

    def __enter__(self) -> Self:
        """Return the window."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for the neighbours (:meth:`fence`) and free; after an error, free at once."""
        try:
            if self._open and kind is None:
                self.fence()
        finally:
            self.free()
