"""Running a program: the one place that chooses a backend."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dectool._hosts import Host, check_slots, checked_hosts, checked_launcher, slots_of
from dectool._text import listing
from dectool.cluster import (
    BACKENDS as BACKENDS,
    STALL_TIMEOUT,
    TIMEOUT,
    Cluster,
    check_backend,
    checked_seconds,
    checked_variables,
)
from dectool.communicator import Observer, Outcome, Settings, describe_channel
from dectool.communicator._missing import checked_policy
from dectool.errors import ArgumentError, ArgumentTypeError, ContractError, UnsupportedOperation
from dectool.fault_report import FaultReport
from dectool.topology import Schedule, Topology

DETECTION = 0.01

if TYPE_CHECKING:
    from dectool.sim import ComputeModel, Fault, NetworkModel, Trace


@dataclass(frozen=True, repr=False)
class Result:
    """What a run returned and what it cost.

    Attributes:
        values: What the program returned on each rank.
        time: Seconds until the last rank had finished (virtual ones in a simulation).
        times: Seconds until each rank had finished.
        messages: Messages sent by all ranks.
        bytes: Payload bytes sent by all ranks.
        trace: The record of the run, if ``trace=True``.
        faults: The report of what went wrong, if ``faults`` were given. Of a rank that crashed
            and did not come back, the value is ``None`` and the time that of the crash.
    """

    values: Sequence[Any]
    time: float
    times: Sequence[float]
    messages: int
    bytes: int
    trace: Trace | None = None
    faults: FaultReport | None = None

    def __repr__(self) -> str:
        return (
            f"<Result of {len(self.values)} ranks: {self.time:.6g} s, "
            f"{self.messages} messages, {self.bytes} bytes>"
        )


def run(
    program: Callable[..., Any],
    n: int | None = None,
    *,
    backend: str | Cluster = "sim",
    topology: Topology | Schedule | None = None,
    network: NetworkModel | None = None,
    compute: ComputeModel | None = None,
    faults: Sequence[Fault] = (),
    detection: float = DETECTION,
    missing: str = "error",
    seed: int = 0,
    args: Sequence[Any] = (),
    ranks_per_node: int | None = None,
    trace: bool = False,
    timeout: float = TIMEOUT,
    stall_timeout: float = STALL_TIMEOUT,
    env: Mapping[str, str] | None = None,
    hosts: Sequence[str] | None = None,
    launcher: str | Sequence[str] | None = None,
) -> Result:
    """Run ``program(comm, *args)`` on ``n`` ranks.

    Args:
        program: A plain function of a :class:`dectool.Communicator`; it runs once for each rank
            (once for all of them with ``"stacked"``).
        n: Number of ranks; default: the size of ``topology``, else as many as ``hosts`` take.
        backend: "sim" (discrete-event simulation), "stacked" (all ranks as rows of one array),
            "mpi" (real processes, which this starts, or joins under ``mpiexec``), or a
            :class:`dectool.Cluster` that is open.
        topology: The default topology of neighbour operations. Of a schedule, step 0 is the
            default; ``comm.topology = comm.schedule.at(k)`` selects another.
        network: When messages arrive; default: at once (not for "mpi", whose network is real).
        compute: How long ``with comm.computing():`` takes; default: no time ("mpi" sleeps so long
            after what the block itself took).
        faults: What goes wrong ("sim" only), such as
            ``[dectool.sim.MessageLoss(0.1), dectool.sim.Crash(rank=3, at=1.5)]``.
        detection: Seconds after which a rank notices that what it waits for will never come:
            from when a lost message would have arrived, or its sender has crashed.
        missing: What neighbour averages do then, "error", "renormalize" or "self": the first
            value of ``comm.missing``.
        seed: Seed of ``comm.rng``, of the compute model and of faults.
        args: Further arguments of the program.
        ranks_per_node: Ranks on each node, placed in blocks; default: 1 in a simulation, and what
            MPI finds on a real machine.
        trace: Whether to record spans and messages ("sim" only).
        timeout: Real seconds that a rank may wait without a message before that is an error, at
            most ``inf`` ("mpi"; a simulator knows at once when nothing can come).
        stall_timeout: Real seconds of waiting after which a rank says whom it waits for ("mpi").
        env: Further environment variables of the processes ("mpi" only).
        hosts: Machines on which the processes run ("mpi" only), each with the number of ranks
            that it takes, as in ``["first:2", "second:2"]`` (1 where none is given). Ranks fill one
            host after the other. Each needs the same Python at the same place.
        launcher: The command that runs another one on a host, called as ``ssh`` is, which is the
            default: a string or a sequence of words.

    Returns:
        Values, time, messages and bytes.

    Raises:
        ArgumentError: An argument breaks a rule.
        DeadlockError: Ranks wait for messages that can never come, or longer than ``timeout``.
        BackendError: A process died, or could not be started.
        Exception: What the program raised, with a note that names the rank.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import topology
        >>> def program(comm):
        ...     return comm.neighbor_allreduce(np.array([6.0]) * comm.rank)
        >>> result = dectool.run(program, backend="sim", topology=topology.ring(3))
        >>> float(result.values[0][0]), result.messages, result.bytes
        (6.0, 6, 48)
    """
    outcome = start(
        program,
        n,
        backend=backend,
        topology=topology,
        network=network,
        compute=compute,
        faults=faults,
        detection=detection,
        missing=missing,
        seed=seed,
        args=args,
        ranks_per_node=ranks_per_node,
        trace=trace,
        timeout=timeout,
        stall_timeout=stall_timeout,
        env=env,
        hosts=hosts,
        launcher=launcher,
    )
    return Result(
        values=outcome.values,
        time=max(outcome.times),
        times=outcome.times,
        messages=outcome.messages,
        bytes=outcome.bytes,
        trace=outcome.trace,
        faults=outcome.faults,
    )


def start(
    program: Callable[..., Any],
    n: int | None,
    *,
    backend: str | Cluster,
    topology: Topology | Schedule | None,
    network: NetworkModel | None,
    compute: ComputeModel | None,
    seed: int,
    ranks_per_node: int | None,
    faults: Sequence[Fault] = (),
    detection: float = DETECTION,
    missing: str = "error",
    args: Sequence[Any] = (),
    trace: bool = False,
    timeout: float = TIMEOUT,
    stall_timeout: float = STALL_TIMEOUT,
    env: Mapping[str, str] | None = None,
    hosts: Sequence[str] | None = None,
    launcher: str | Sequence[str] | None = None,
    observer: Observer | None = None,
) -> Outcome:
    """Check the arguments of :func:`run`, choose the backend, and run, with an observer."""
    name = backend.backend if isinstance(backend, Cluster) else backend
    check_backend(name)
    _check_program(program)
    machines = checked_hosts(hosts)
    agent = checked_launcher(launcher, machines)
    if n is None and topology is None:
        if isinstance(backend, Cluster):
            n = backend.n
        elif machines:
            n = slots_of(machines)
    settings = Settings(
        size=_checked_size(n, topology),
        topology=topology.at(0) if isinstance(topology, Schedule) else topology,
        schedule=topology if isinstance(topology, Schedule) else None,
        network=_checked_model("network", network, "NetworkModel"),
        compute=_checked_model("compute", compute, "ComputeModel"),
        seed=_checked_whole("seed", seed, 0),
        local_size=(
            None if ranks_per_node is None else _checked_whole("ranks_per_node", ranks_per_node, 1)
        ),
        trace=trace,
        observer=observer,
        timeout=checked_seconds("timeout", timeout),
        stall_timeout=checked_seconds("stall_timeout", stall_timeout),
        env=checked_variables(env),
        faults=checked_faults(faults, name),
        detection=_checked_detection(detection),
        missing=checked_policy(missing),
    )
    _check_offered(name, settings)
    _check_hosts(backend, settings.size, machines)
    if isinstance(backend, Cluster):
        outcome = backend.execute(program, args, settings)
    elif backend == "mpi":
        from dectool.backends.mpi import run_mpi

        outcome = run_mpi(program, args, settings, machines, agent)
    else:
        outcome = _simulator(backend)(program, args, settings)
    _check_received(outcome.unreceived)
    return outcome


def _simulator(name: str) -> Callable[[Any, Sequence[Any], Settings], Outcome]:
    from dectool.sim import _start

    return _start.run_sim if name == "sim" else _start.run_stacked


def _check_hosts(backend: str | Cluster, n: int, hosts: Sequence[Host]) -> None:
    """Refuse hosts where none are taken, or not so many ranks."""
    if not hosts:
        return
    if isinstance(backend, Cluster):
        raise ArgumentError(
            "hosts= comes too late for processes that run; give it to Cluster(hosts=...)"
        )
    if backend != "mpi":
        raise UnsupportedOperation(
            f"hosts= is for processes, which backend {backend!r} does not start; leave it out, or "
            "use backend='mpi'"
        )
    check_slots(n, hosts)


def _check_offered(backend: str, settings: Settings) -> None:
    """Refuse what a backend has not."""
    if settings.trace and backend != "sim":
        why = {
            "stacked": "needs single ranks, which backend 'stacked' has not",
            "mpi": "records virtual time, and that of backend 'mpi' is real",
        }
        raise UnsupportedOperation(f"trace=True {why[backend]}; use backend='sim'")
    if settings.network is not None and backend == "mpi":
        raise UnsupportedOperation(
            f"network={settings.network!r}: the network of backend 'mpi' is real; leave network "
            "out, or use backend='sim'"
        )
    if settings.env and backend != "mpi":
        raise UnsupportedOperation(
            f"env= is for processes, which backend {backend!r} does not start; leave it out, or "
            "use backend='mpi'"
        )


def _check_program(program: Any) -> None:
    if not callable(program):
        raise ArgumentTypeError(
            f"program is a {type(program).__name__}; give a function of a communicator"
        )
    if inspect.iscoroutinefunction(program) or inspect.isgeneratorfunction(program):
        name = getattr(program, "__name__", repr(program))
        raise ArgumentTypeError(
            f"program {name} is a coroutine or generator function; calls of a communicator block, "
            "so write a plain function, without async, await or yield"
        )


def _checked_size(n: int | None, topology: Any) -> int:
    if topology is not None and not isinstance(topology, (Topology, Schedule)):
        raise ArgumentTypeError(
            f"topology is a {type(topology).__name__}; give a Topology or a Schedule "
            "(topology.from_graph and topology.from_matrix make one)"
        )
    if n is None:
        if topology is None:
            raise ArgumentError("give the number of ranks, n=, or a topology=, which has one")
        return topology.size
    size = _checked_whole("n", n, 1)
    if topology is not None and topology.size != size:
        raise ArgumentError(
            f"n={n}, but topology is a {topology.name} with {topology.size} ranks; "
            f"leave n out, or build the topology for {n}"
        )
    return size


def _checked_whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArgumentTypeError(f"{name} is {value!r}; it must be an integer, at least {least}")
    if value < least:
        raise ArgumentError(f"{name}={value} must be at least {least}")
    return int(value)


def _checked_model(name: str, model: Any, kind: str) -> Any:
    from dectool import sim

    if model is not None and not isinstance(model, getattr(sim, kind)):
        examples = {
            "network": "AlphaBeta(latency=1e-5, bandwidth=1e9)",
            "compute": "Exponential(1e-3)",
        }
        raise ArgumentTypeError(
            f"{name} is {model!r}; give a {kind}, such as dectool.sim.{examples[name]}"
        )
    return model


def checked_faults(faults: Any, backend: str) -> tuple[Fault, ...]:
    """Return the faults, or refuse what is none, or a backend that has none.

    Raises:
        ArgumentTypeError: Something is no fault.
        UnsupportedOperation: ``backend`` is not "sim".
    """
    from dectool.sim import Fault

    if isinstance(faults, Fault):
        raise ArgumentTypeError(f"faults is {faults!r} alone; give a list: faults=[{faults!r}]")
    if not isinstance(faults, Sequence) or isinstance(faults, str):
        raise ArgumentTypeError(
            f"faults is {faults!r}; give a list of faults, such as "
            "[dectool.sim.Crash(rank=3, at=1.5)]"
        )
    for index, fault in enumerate(faults):
        if not isinstance(fault, Fault):
            raise ArgumentTypeError(
                f"faults[{index}] is {fault!r}; give a fault, such as "
                "dectool.sim.Crash(rank=3, at=1.5)"
            )
    if faults and backend != "sim":
        why = {
            "stacked": "its ranks are rows of one array, and all take part in every step",
            "mpi": "what goes wrong with real processes is not ours to choose",
        }
        raise UnsupportedOperation(
            f"faults= is for backend 'sim', not for {backend!r}: {why[backend]}; use backend='sim'"
        )
    return tuple(faults)


def _checked_detection(detection: Any) -> float:
    number = isinstance(detection, (int, float, np.number)) and not isinstance(detection, bool)
    if not number:
        raise ArgumentTypeError(f"detection is {detection!r}; give a number of seconds")
    if not 0.0 <= detection < float("inf"):
        raise ArgumentError(f"detection={detection} must be finite and at least 0 seconds")
    return float(detection)


def _check_received(unreceived: Sequence[tuple[int, int, Any]]) -> None:
    """Refuse a run in which a neighbour operation sent what nobody expected."""
    lost = [
        f"from rank {source} to rank {dest} in {describe_channel(channel)}"
        for source, dest, channel in unreceived
    ]
    if lost:
        raise ContractError(
            f"{len(lost)} message{'s' if len(lost) > 1 else ''} sent but never received: "
            f"{listing(lost, most=4)}; every "
            "send needs a receive: the same operation, and each destination must name its source"
        )
