"""Runs a command on a host of :class:`dectool.testing._lab.Lab`, called as ``ssh`` is."""

from __future__ import annotations

import os
import sys

_WITH_VALUE = ("-F", "-i", "-l", "-o", "-p")


def main(network: str, names: str, hidden: str, *words: str) -> None:
    """Become a command on a host.

    Args:
        network: Begins the addresses of hosts; what follows is a number.
        names: Begins the names of their namespaces.
        hidden: "address=folder" of a folder that is empty there, or nothing.
        words: Options, an address and the command.
    """
    left = list(words)
    while left[0].startswith("-"):
        del left[: 2 if left[0] in _WITH_VALUE else 1]
    address, *command = left
    if not address.startswith(network):
        sys.exit(f"cannot resolve hostname {address}")
    name = names + address.removeprefix(network)
    where, _, folder = hidden.partition("=")
    hide = f"mount -t tmpfs none {folder} && " if where == address else ""
    # As ssh: what mpiexec listens on must not stay open in its helpers.
    os.closerange(3, 1024)
    setup = ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c"]
    script = f'{hide}hostname "$0" && cd / && exec sh -c "$*"'
    os.execvp(setup[0], [*setup, script, name, *command])


if __name__ == "__main__":
    main(*sys.argv[1:])
