"""Hosts for tests and benchmarks: network namespaces of this machine, joined by slow links."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Self, final

from dectool.testing import _agent

_numbers = itertools.count()
_BURST = 1e-3
"""Seconds of the rate that a link that was idle sends at once."""

_LEAST_BURST = 72 << 10
_QUEUE = "50ms"
_CONGESTION = ("cubic", "reno")
"""Congestion control of the hosts, the first that may be used: that of Linux, or its elder. What a
machine has chosen for itself may be BBR, under which two flows that share a link leave some of it
unused."""


class LabError(RuntimeError):
    """A command that builds hosts failed; the message is the command and what it said."""


@final
class Lab:
    """Hosts that are network namespaces, each with its own name, address and link.

    All links meet at a bridge, which the machine itself is at too, so that a launcher reaches the
    hosts. They share one kernel: see ``variables``.

    Args:
        n: Number of hosts, at most 200.
        rate: Of each link in either direction, headers included [byte/s]; ``None`` for no limit.
        mtu: Largest packet [byte].

    Attributes:
        addresses: Of the hosts; they serve as names, since no resolver knows others.
        names: What the hosts call themselves.
        launcher: The command that reaches the hosts.
        congestion: TCP's congestion control on them.
        variables: Make MPI use the links between hosts, though all have the same memory.

    Example:
        >>> with Lab(2, rate=12.5e6) as lab:                            # doctest: +SKIP
        ...     dectool.run(program, backend="mpi", hosts=[f"{a}:2" for a in lab.addresses],
        ...                 launcher=lab.launcher, env=lab.variables)
    """

    variables = {  # noqa: RUF012
        "UCX_TLS": "tcp",
        "UCX_NET_DEVICES": "eth0",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "tcp,self,sm",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
    }

    def __init__(self, n: int, *, rate: float | None = None, mtu: int = 1500) -> None:
        tag = f"dt{os.getpid()}{chr(ord('a') + next(_numbers) % 26)}"
        self._network = ""
        self._bridge = f"{tag}b"
        self._links = [f"{tag}{k}" for k in range(n)]
        self._rate = rate
        self._mtu = str(mtu)
        self._folder = Path()
        self._prefix = f"{tag}-"
        self.addresses: list[str] = []
        self.names = [f"{tag}-{k}" for k in range(1, n + 1)]
        self.launcher = ""
        self.congestion = ""

    def __enter__(self) -> Self:
        """Build the hosts.

        Raises:
            LabError: Rights or tools are missing.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="dectool-lab-"))
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        self.launcher = str(self._script("agent", ""))
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the hosts, with whatever still runs on them."""
        self._remove()

    def _build(self) -> None:
        self._network = _free_network()
        self.addresses = [f"{self._network}{k}" for k in range(1, len(self.names) + 1)]
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("address", "add", f"{self._network}254/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "mtu", self._mtu, "up")
        for name, link, address in zip(self.names, self._links, self.addresses, strict=True):
            _ip("netns", "add", name)
            _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", link, "master", self._bridge, "mtu", self._mtu, "up")
            _ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "mtu", self._mtu, "up")
            _ip("-n", name, "link", "set", "lo", "up")
            if self._rate is not None:
                burst = max(_BURST * self._rate, _LEAST_BURST)
                # In the language of tc, bps are bytes per second.
                limit = ["root", "tbf", "rate", f"{self._rate:.0f}bps"]
                limit += ["burst", f"{burst:.0f}", "latency", _QUEUE]
                _call("tc", "qdisc", "add", "dev", link, *limit)
                _call("tc", "-n", name, "qdisc", "add", "dev", "eth0", *limit)
            self._control_congestion(name)

    def _control_congestion(self, name: str) -> None:
        """Make a host independent of the machine, whose choice it would take over."""
        setting = "/proc/sys/net/ipv4/tcp_congestion_control"
        choice = " || ".join(f"echo {control} > {setting}" for control in _CONGESTION)
        _ip("netns", "exec", name, "sh", "-c", choice, check=False)
        self.congestion = _ip("netns", "exec", name, "cat", setting).strip()

    def _remove(self) -> None:
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        for name in self.names:
            _ip("netns", "delete", name, check=False)
        for link in (*self._links, self._bridge):
            _ip("link", "delete", link, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _script(self, name: str, hidden: str) -> Path:
        path = self._folder / name
        words = [sys.executable, "-ES", _agent.__file__, self._network, self._prefix, hidden]
        path.write_text(f'#!/bin/sh\nexec {" ".join(repr(word) for word in words)} "$@"\n')
        path.chmod(0o700)
        return path

    def launcher_hiding(self, folder: Path, host: int) -> str:
        """Return a launcher with which a folder is empty on one host."""
        return str(self._script("hiding", f"{self.addresses[host]}={folder}"))

    def sent(self, host: int) -> int:
        """Return how many bytes a host has sent over its link, headers included."""
        counter = Path("/sys/class/net", self._links[host], "statistics/rx_bytes")
        return int(counter.read_text())

    def processes(self) -> list[int]:
        """Return the processes that run on the hosts."""
        return [
            int(pid)
            for name in self.names
            for pid in _ip("netns", "pids", name, check=False).split()
        ]


def _free_network() -> str:
    """Return the beginning of addresses that this machine does not use."""
    used = _ip("-o", "address")
    for place in itertools.count(os.getpid()):
        network = f"10.{64 + place // 256 % 64}.{place % 256}."
        if f" {network}" not in used:
            break
    return network


def why_no_lab() -> str | None:
    """Return why hosts cannot be built here, or ``None`` if they can; found by building some."""
    if sys.platform != "linux":
        return f"network namespaces need Linux, and this is {sys.platform}"
    for tool in ("ip", "tc", "unshare"):
        if shutil.which(tool) is None:
            return f"network namespaces need the command {tool}, which is not installed"
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        with Lab(1, rate=1e6):
            return None
    except LabError as error:
        return f"network namespaces cannot be built: {error}"


def _ip(*words: str, check: bool = True) -> str:
    return _call("ip", *words, check=check)


def _call(*words: str, check: bool = True) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise LabError(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done.stdout
