"""Memory of results is used again, and never while something shows it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dectool.kernels import _room


@pytest.fixture
def room() -> _room._Room:
    return _room._Room()


FLOATS = np.dtype(np.float32)
LARGE = (1 << 17,)


def test_dropped_memory_serves_again(room: _room._Room) -> None:
    first = room.empty(LARGE, FLOATS)
    address = first.ctypes.data
    del first
    again = room.empty((2, 1 << 15), np.dtype(np.float64))
    assert again.ctypes.data == address
    assert again.shape == (2, 1 << 15)
    assert again.flags.c_contiguous
    assert again.flags.writeable


def test_memory_that_is_seen_is_left_alone(room: _room._Room) -> None:
    """Through a slice of a slice, or through a buffer."""
    for keep in (lambda a: a[5:][::2], lambda a: memoryview(a), lambda a: a.reshape(2, -1).T):
        array = room.empty(LARGE, FLOATS)
        array[...] = 1
        seen = keep(array)
        del array
        for _ in range(3):
            room.empty(LARGE, FLOATS)[...] = 2
        assert np.asarray(seen).max() == 1


def test_few_are_kept_and_small_ones_not(room: _room._Room) -> None:
    arrays = [room.empty((size,), FLOATS) for size in range(1 << 17, (1 << 17) + 20)]
    assert len(room._kept) == _room.MOST
    for index, array in enumerate(arrays):
        array[...] = index
    assert [array.min() for array in arrays] == list(range(20))
    room._kept.clear()
    room.empty((10,), FLOATS)
    assert not room._kept


def test_threads_never_get_the_same(room: _room._Room) -> None:
    def work(number: int) -> bool:
        right = True
        for _ in range(200):
            array = room.empty(LARGE, FLOATS)
            array[:10] = number
            right = right and bool((array[:10] == number).all())
        return right

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
