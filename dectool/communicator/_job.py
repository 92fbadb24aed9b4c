"""What a way in tells a backend, and what the backend gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from dectool.communicator._observation import Observation
from dectool.fault_report import FaultReport


class Observer(Protocol):
    """Takes the records of a run; one rank's process owns it."""

    @property
    def live(self) -> bool:
        """Whether a record may end the run, so that it must be taken while the run goes on."""
        ...

    def collect(self, observation: Observation) -> bool:
        """Take one record; tell whether the run is to end."""
        ...


class StopRun(BaseException):
    """Ends a rank when an observer ends the run; never seen by programs."""


class Settings(NamedTuple):
    """How to run a program.

    Attributes:
        size: Number of ranks.
        topology: Default topology, or ``None``.
        schedule: Default schedule, or ``None``.
        network: Network model, or ``None``.
        compute: Compute-time model, or ``None``.
        seed: Seed of everything random.
        local_size: Ranks on one node; ``None`` for what the backend finds.
        trace: Whether to record spans and messages.
        observer: Who takes the records, or ``None``.
        stall_timeout: Real seconds of waiting after which a rank reports whom it waits for.
        timeout: Real seconds of waiting after which that is an error.
        env: Further environment variables of the processes.
        faults: What goes wrong in a simulation.
        detection: Seconds after which a simulated rank notices that nothing comes.
        missing: What neighbour averages do about lost messages.
    """

    size: int
    topology: Any = None
    schedule: Any = None
    network: Any = None
    compute: Any = None
    seed: int = 0
    local_size: int | None = None
    trace: bool = False
    observer: Observer | None = None
    stall_timeout: float = 30.0
    timeout: float = 300.0
    env: Mapping[str, str] = {}
    faults: Sequence[Any] = ()
    detection: float = 0.01
    missing: str = "error"


class Outcome(NamedTuple):
    """What a run left.

    Attributes:
        values: What the program returned on each rank.
        times: Seconds until each rank had finished.
        messages: Messages sent by all.
        bytes: Payload bytes sent by all.
        trace: Spans and messages, or ``None``.
        unreceived: (source, destination, channel) of each message that nobody received.
        observer: The observer, with what it has taken.
        faults: The report of what went wrong, or ``None`` where nothing was to.
    """

    values: Sequence[Any]
    times: Sequence[float]
    messages: int
    bytes: int
    trace: Any
    unreceived: Sequence[tuple[int, int, Any]]
    observer: Observer | None
    faults: FaultReport | None = None
