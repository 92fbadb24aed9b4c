"""The command that starts a job, in the words of the MPI that is there."""

from __future__ import annotations

import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from dectool._hosts import Host
from dectool.backends.mpi._variables import defaults, environment, mpiexec
from dectool.errors import ArgumentError, BackendError

CANNOT_START = "dectool cannot start on host"
"""Begins the line of a process that cannot be a rank."""

# Where Python or dectool is missing, neither can say so.
_SHELL = f"""
test -x "$0" || {{
    echo "{CANNOT_START} $(uname -n): there is no $0" >&2
    exit 1
}}
exec "$0" "$@"
"""
_PYTHON = f"""
import os, sys
channel = os.dup(2)
os.dup2(1, 2)
if os.path.isdir(sys.argv[1]):
    os.chdir(sys.argv[1])
sys.path.insert(0, sys.argv[2])
try:
    from dectool.backends.mpi._worker import main
except BaseException as error:
    os.write(channel, (f"{CANNOT_START} {{os.uname().nodename}}: {{sys.executable}} cannot "
                       f"import it: {{type(error).__name__}}: {{error}}\\n").encode())
    sys.exit(1)
sys.path.remove(sys.argv[2])
main(channel)
"""
_UNDER_WAY = 1 << 17
_UNDER_WAY_TO_HOSTS = 1 << 12
"""That of Open MPI stops for good when a second piece is on its way to another host."""

_PLACE = str(Path(str(sys.modules["dectool"].__file__)).parents[1])
_SSH = ("ssh",)
_PATIENCE = 20.0


class Command(NamedTuple):
    """How to start ranks.

    Attributes:
        words: Of the command.
        environment: Of its process.
        under_way: How many bytes it takes of its standard input before rank 0 has read them.
    """

    words: list[str]
    environment: dict[str, str]
    under_way: int


def command(
    n: int, hosts: Sequence[Host], launcher: Sequence[str], more: Mapping[str, str]
) -> Command:
    """Return the command that starts ranks.

    Args:
        n: How many.
        hosts: Where; ranks fill one host after the other. None: here, or where the batch system
            says.
        launcher: Words of the command that reaches hosts; default: ssh.
        more: Further environment variables.

    Raises:
        BackendError: There is no ``mpiexec``, or none that is known to take hosts.
        ArgumentError: There is no such launcher.
    """
    variables = environment(more)
    words = [mpiexec(), "-n", str(n)]
    under_way = _UNDER_WAY
    if hosts:
        agent = _agent(hosts, launcher)
        if _vendor(words[0]) == "MPICH":
            words += _mpich(hosts, agent[0])
            if agent[1:]:
                variables["HYDRA_LAUNCHER_EXTRA_ARGS"] = " ".join(agent[1:])
        else:
            words += _open_mpi(hosts, agent, more)
            under_way = _UNDER_WAY_TO_HOSTS
    # The folder of the starter may be missing elsewhere, which mpiexec would refuse.
    words += ["-wdir", "/", "/bin/sh", "-c", _SHELL]
    # -P: what lies in the folder hides no module, while this dectool is the one to import.
    words += [sys.executable, "-P", "-u", "-c", _PYTHON, str(Path.cwd()), _PLACE]
    return Command(words, variables, under_way)


def check_hosts(names: Sequence[str], launcher: Sequence[str]) -> str:
    """Try hosts one by one; return what those said on which nothing could start.

    Args:
        names: Of the hosts.
        launcher: As for :func:`command`.
    """
    agent = list(launcher or _SSH)
    test = f"{shlex.quote(mpiexec())} --version > /dev/null"
    trials = {
        name: subprocess.Popen(
            [*agent, name, test],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        for name in names
    }
    limit = time.monotonic() + _PATIENCE
    found = []
    for name, trial in trials.items():
        try:
            said, _ = trial.communicate(timeout=max(0.0, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            trial.kill()
            trial.communicate()
            found.append(f"host {name} does not answer to {agent[0]} in {_PATIENCE:.0f} s")
        else:
            if trial.returncode:
                words = said.strip() or f"status {trial.returncode}"
                found.append(f"nothing starts on host {name}: {words}")
    return "; ".join(found)


def _agent(hosts: Sequence[Host], launcher: Sequence[str]) -> list[str]:
    """Return the launcher with its full path, which ``mpiexec`` needs."""
    words = list(launcher or _SSH)
    found = shutil.which(words[0])
    if found is not None:
        return [str(Path(found).absolute()), *words[1:]]
    if not launcher and all(host.name == "localhost" for host in hosts):
        return words
    raise ArgumentError(
        f"launcher={' '.join(words)!r}: there is no command {words[0]!r} here; give the command "
        "that runs another one on a host, such as launcher='ssh'"
    )


def _mpich(hosts: Sequence[Host], agent: str) -> list[str]:
    words = ["-launcher", "ssh", "-launcher-exec", agent, "-hosts", ",".join(map(str, hosts))]
    address = _own_address([host.name for host in hosts])
    return words if address is None else ["-localhost", address, *words]


def _open_mpi(hosts: Sequence[Host], agent: Sequence[str], more: Mapping[str, str]) -> list[str]:
    words = ["--host", ",".join(map(str, hosts)), "--map-by", "slot:oversubscribe"]
    words += ["--prtemca", "plm_ssh_agent", " ".join(agent)]
    # Other hosts get no more of the environment than is named.
    return words + [word for name in {**defaults(), **more} for word in ("-x", name)]


@cache
def _vendor(launcher: str) -> str:
    """Return which MPI a launcher belongs to, by what it says of itself.

    Raises:
        BackendError: None that we know how to tell hosts.
    """
    said = subprocess.run(
        [launcher, "--version"], capture_output=True, text=True, check=False, timeout=30.0
    ).stdout
    if "HYDRA" in said:
        return "MPICH"
    if any(name in said for name in ("Open MPI", "OpenRTE", "PRRTE", "prterun")):
        return "Open MPI"
    raise BackendError(
        f"hosts= needs the launcher of MPICH or of Open MPI, and {launcher} says of itself: "
        f"{said.strip()[:200] or 'nothing'}"
    )


def _own_address(names: Sequence[str]) -> str | None:
    """Return this machine's address towards the first host that is another one.

    The name of this machine, which launchers tell the hosts otherwise, may mean nothing there.
    """
    for name in names:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                # Nothing is sent; this asks the table of routes.
                probe.connect((name, 9))
            except OSError:
                continue
            address = str(probe.getsockname()[0])
        if not address.startswith("127."):
            return address
    return None
