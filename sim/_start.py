"""Starting a program on the two simulated backends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, final, overload

from dectool.communicator import Outcome, Settings, StopRun
from dectool.sim._communicator import SimCommunicator
from dectool.sim._engine import Engine
from dectool.sim._strand import Strand
from dectool.sim.compute import ComputeTimes
from dectool.sim.faults._communicator import FaultyCommunicator
from dectool.sim.faults._engine import FaultyEngine
from dectool.sim.faults._plan import FaultPlan
from dectool.sim.network import AlphaBeta
from dectool.sim.stacked import Clocks, StackedCommunicator, unstack_tree
from dectool.sim.trace import Trace


def run_sim(program: Callable[..., Any], args: Sequence[Any], settings: Settings) -> Outcome:
    """Run a program by discrete-event simulation, one greenlet for each rank."""
    network = settings.network if settings.network is not None else AlphaBeta()
    network.check_size(settings.size)
    trace = Trace(settings.size) if settings.trace else None
    compute = ComputeTimes(settings.compute, settings.size, settings.seed)
    observer = settings.observer
    engine: Engine
    kind: type[SimCommunicator]
    if settings.faults:
        plan = FaultPlan(settings.faults, settings.size, settings.seed)
        engine = FaultyEngine(
            settings.size, network, compute, trace, observer, plan, settings.detection
        )
        kind = FaultyCommunicator
    else:
        engine = Engine(settings.size, network, compute, trace, observer)
        kind = SimCommunicator

    def start(strand: Strand) -> Any:
        comm = kind(engine, strand, seed=settings.seed, local_size=settings.local_size or 1)
        comm._topology, comm._schedule = settings.topology, settings.schedule
        comm._missing = settings.missing
        return program(comm, *args)

    values = engine.run([start] * settings.size)
    for window in engine.windows.values():
        window.check()
    return Outcome(
        values,
        engine.times,
        engine.messages,
        engine.bytes,
        trace,
        engine.unreceived(),
        settings.observer,
        engine.report if isinstance(engine, FaultyEngine) else None,
    )


def run_stacked(program: Callable[..., Any], args: Sequence[Any], settings: Settings) -> Outcome:
    """Run a program once, for all ranks together."""
    network = settings.network if settings.network is not None else AlphaBeta()
    network.check_size(settings.size)
    clocks = Clocks(settings.size, network)
    compute = ComputeTimes(settings.compute, settings.size, settings.seed)
    comm = StackedCommunicator(
        settings.size,
        clocks,
        compute,
        seed=settings.seed,
        local_size=settings.local_size or 1,
        observer=settings.observer,
    )
    comm._topology, comm._schedule = settings.topology, settings.schedule
    comm._missing = settings.missing
    try:
        value = program(comm, *args)
    except StopRun:
        value = None
    values = StackedValues(value, settings.size)
    return Outcome(
        values,
        clocks.time.tolist(),
        clocks.messages,
        clocks.bytes,
        None,
        (),
        settings.observer,
    )


@final
class StackedValues(Sequence[Any]):
    """The values of a stacked run, one per rank, cut out when asked for.

    Attributes:
        stacked: What the program returned, with the rank axis in front.
    """

    def __init__(self, stacked: Any, size: int) -> None:
        self.stacked = stacked
        self._size = size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return the value of one rank, or a list of several."""
        if isinstance(index, slice):
            return [self[rank] for rank in range(*index.indices(self._size))]
        rank = range(self._size)[index]
        return unstack_tree(self.stacked, rank, self._size)

    def __iter__(self) -> Iterator[Any]:
        return (self[rank] for rank in range(self._size))

    def __repr__(self) -> str:
        return f"StackedValues({self.stacked!r})"
