"""Where a run may happen: under asyncio, in threads, inside another run, and with many ranks."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
import torch

import dectool
from dectool import topology
from dectool.errors import ArgumentTypeError

RING = topology.ring(4)


def average(comm: Any) -> float:
    return float(comm.neighbor_allreduce(np.array([3.0 * comm.rank]))[0])


EXPECTED = [pytest.approx(value) for value in (4.0, 3.0, 6.0, 5.0)]


def test_inside_a_running_event_loop() -> None:
    async def notebook() -> Any:
        await asyncio.sleep(0)
        return dectool.run(average, topology=RING).values

    assert asyncio.run(notebook()) == EXPECTED


def test_a_coroutine_is_no_program() -> None:
    async def program(comm: Any) -> None:
        del comm

    with pytest.raises(ArgumentTypeError, match="program program is a coroutine or generator"):
        dectool.run(program, 2)
    with pytest.raises(ArgumentTypeError, match="calls of a communicator block"):
        dectool.run(lambda comm: (yield comm), 2)


def test_inside_the_program_of_another_run() -> None:
    def outer(comm: Any) -> Any:
        inner = dectool.run(average, topology=RING).values
        assert inner == EXPECTED
        return float(comm.allreduce(np.array(inner[comm.rank])))

    assert dectool.run(outer, 4).values == [pytest.approx(4.5)] * 4


def test_in_several_threads_at_once() -> None:
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        def program(comm: Any) -> float:
            x = np.array([float(comm.rank + number)])
            for _ in range(50):
                x = comm.neighbor_allreduce(x)
            return float(x[0])

        results[number] = dectool.run(program, topology=RING).values

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        assert results[number] == [pytest.approx(1.5 + number)] * 4


def test_two_thousand_ranks() -> None:
    n = 2000

    def program(comm: Any) -> float:
        x = np.array([float(comm.rank)])
        for _ in range(5):
            x = comm.neighbor_allreduce(x)
        return float(comm.allreduce(x, "sum")[0])

    result = dectool.run(program, topology=topology.ring(n))
    assert result.values == [pytest.approx(n * (n - 1) / 2)] * n
    assert result.messages > 5 * 2 * n


def test_what_the_caller_set_holds_in_the_programs() -> None:
    """np.errstate around a run; and one rank's no_grad does not reach the others."""

    def program(comm: Any) -> list[bool]:
        assert np.geterr()["over"] == "raise"
        seen = [torch.is_grad_enabled()]
        with torch.set_grad_enabled(comm.rank % 2 == 1):
            for _ in range(3):
                comm.barrier()
                seen.append(torch.is_grad_enabled())
        comm.barrier()
        return [*seen, torch.is_grad_enabled()]

    with np.errstate(over="raise"):
        values = dectool.run(program, 4).values
    for rank, seen in enumerate(values):
        assert seen == [True, *[rank % 2 == 1] * 3, True]
    assert torch.is_grad_enabled()
