"""Arrays of more than 2^31 elements, which do not fit into the counts of MPI's older calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dectool

pytest.importorskip("mpi4py", reason="needs the extra mpi: pip install 'dectool[mpi]'")

SIZE = 2**31 + 8


def made() -> np.ndarray[Any, Any]:
    """Return an array whose ends, and the ends of whose pieces, differ."""
    array = np.zeros(SIZE, np.int8)
    for place in (0, 2**30 - 1, 2**30, 2**31 - 1, 2**31, SIZE - 1):
        array[place] = place % 97 + 1
    return array


def send(comm: Any) -> Any:
    if comm.rank == 0:
        comm.send(made(), 1)
        return None
    return comm.recv(0)


def broadcast(comm: Any) -> Any:
    return comm.broadcast(made() if comm.rank == 0 else np.zeros(SIZE, np.int8), 0)


@pytest.mark.large
@pytest.mark.parametrize("operation", [send, broadcast])
def test_more_elements_than_an_int_counts(operation: Callable[[Any], Any]) -> None:
    """Takes about 9 GiB of memory."""

    def program(comm: Any) -> Any:
        received = operation(comm)
        if comm.rank == 0:
            return None
        kept = int(np.count_nonzero(received)), received.dtype.name, received.shape
        expected = made()
        return (*kept, bool(np.array_equal(received, expected)))

    result = dectool.run(program, 2, backend="mpi")
    assert result.values[1] == (6, "int8", (SIZE,), True)
    assert result.bytes == SIZE
