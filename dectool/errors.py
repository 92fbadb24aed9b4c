"""The exceptions of dectool.

Each derives from :class:`DectoolError` and, where Python has a matching built-in, from that too,
so ``except ValueError`` keeps working. Every message is one positional argument that says who,
what was got, and what would do.
"""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "BackendError",
    "ContractError",
    "DataError",
    "DeadlockError",
    "DectoolError",
    "LivelockError",
    "MessageLostError",
    "MissingDependencyError",
    "PeerLostError",
    "TopologyError",
    "UnsupportedOperation",
    "WindowError",
]


class DectoolError(Exception):
    """Base class of every error that dectool raises on purpose."""


class ArgumentError(DectoolError, ValueError):
    """An argument has a value that breaks a rule; the message names it, the rule and the fix."""


class ArgumentTypeError(DectoolError, TypeError):
    """An argument has a type, or an array a dtype, that the operation does not take."""


class TopologyError(ArgumentError):
    """A graph or mixing matrix breaks a condition, or two ranks have no edge between them."""


class ContractError(DectoolError, ValueError):
    """Ranks disagree about an operation: shapes, dtypes, weights or partners do not match."""


class DataError(DectoolError, ValueError):
    """A data file or data set is malformed; the message names the file and the line."""


class DeadlockError(DectoolError, RuntimeError):
    """Ranks wait for messages that can never come; the message lists each with its source line."""


class LivelockError(DectoolError, RuntimeError):
    """A rank polls a request without letting (virtual) time pass."""


class MessageLostError(DectoolError, ConnectionError):
    """A message will never come; the message says whose, in which operation, why, and when."""


class PeerLostError(MessageLostError):
    """A message will never come because its sender is not there: it crashed, or came too late."""


class UnsupportedOperation(DectoolError, NotImplementedError):
    """The backend cannot do this; the message names the backends that can."""


class WindowError(DectoolError, RuntimeError):
    """A one-sided window is used after it was freed, or in a way that would lose mass."""


class BackendError(DectoolError, RuntimeError):
    """A backend is misused, or cannot be started."""


class MissingDependencyError(DectoolError, ImportError):
    """An optional package is not installed; the message holds the ``pip install`` line."""
