"""Hosts on which ranks run, and the command that reaches them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from dectool.errors import ArgumentError, ArgumentTypeError

_NAME = re.compile(r"[^\s,-][^\s,]*")


class Host(NamedTuple):
    """A machine, and how many ranks it takes."""

    name: str
    slots: int

    def __str__(self) -> str:
        return f"{self.name}:{self.slots}"


def checked_hosts(hosts: Any) -> tuple[Host, ...]:
    """Return hosts from entries such as "name" (one rank) and "name:2"; none from ``None``.

    Raises:
        ArgumentTypeError: It is no sequence of strings.
        ArgumentError: An entry has no name or no number, a name comes twice, or there is none.

    Example:
        >>> [str(host) for host in checked_hosts(["first:2", "second"])]
        ['first:2', 'second:1']
    """
    if hosts is None:
        return ()
    if isinstance(hosts, str) or not isinstance(hosts, Sequence):
        raise ArgumentTypeError(f"hosts is {hosts!r}; give a list of names, such as ['first:2']")
    if not hosts:
        raise ArgumentError("hosts is empty; name at least one, or leave it out for this machine")
    found = [_host(index, entry) for index, entry in enumerate(hosts)]
    names = [host.name for host in found]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(
                f"hosts names {name!r} {names.count(name)} times; name it once, with the number "
                f"of its ranks: '{name}:{sum(host.slots for host in found if host.name == name)}'"
            )
    return tuple(found)


def _host(index: int, entry: Any) -> Host:
    if not isinstance(entry, str):
        raise ArgumentTypeError(f"hosts[{index}] is {entry!r}; give a name, such as 'first:2'")
    name, colon, slots = entry.partition(":")
    if not _NAME.fullmatch(name):
        raise ArgumentError(f"hosts[{index}]={entry!r} does not begin with the name of a host")
    if colon and not (slots.isascii() and slots.isdecimal() and int(slots) > 0):
        raise ArgumentError(
            f"hosts[{index}]={entry!r}: what follows the colon must be a number of ranks, at "
            f"least 1, such as '{name}:2'"
        )
    return Host(name, int(slots) if colon else 1)


def slots_of(hosts: Sequence[Host]) -> int:
    """Return how many ranks the hosts take."""
    return sum(host.slots for host in hosts)


def check_slots(n: int, hosts: Sequence[Host]) -> None:
    """Refuse more ranks than the hosts take.

    Raises:
        ArgumentError: There are more.
    """
    if hosts and n > slots_of(hosts):
        raise ArgumentError(
            f"n={n}, but hosts={[str(host) for host in hosts]} take {slots_of(hosts)} ranks; name "
            f"more hosts, or more ranks for one, such as "
            f"'{hosts[-1].name}:{hosts[-1].slots + n - slots_of(hosts)}'"
        )


def checked_launcher(launcher: Any, hosts: Sequence[Host]) -> tuple[str, ...]:
    """Return the words of the command that reaches hosts; none from ``None``.

    Raises:
        ArgumentTypeError: It is neither a string nor a sequence of strings.
        ArgumentError: It is empty, a word has a space, or there are no hosts to reach.

    Example:
        >>> checked_launcher("ssh -p 2222", [Host("first", 2)])
        ('ssh', '-p', '2222')
    """
    if launcher is None:
        return ()
    words = shlex.split(launcher) if isinstance(launcher, str) else launcher
    if not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
        raise ArgumentTypeError(
            f"launcher is {launcher!r}; give a command, such as 'ssh -p 2222' or ['ssh', '-p', "
            "'2222']"
        )
    if not words or any(not word or any(c.isspace() for c in word) for word in words):
        raise ArgumentError(
            f"launcher={launcher!r} must be words without spaces inside, at least one; put what "
            "needs more into a script"
        )
    if not hosts:
        raise ArgumentError(
            f"launcher={launcher!r} reaches hosts, and none is named; give hosts=['first:2', ...]"
        )
    return tuple(words)
