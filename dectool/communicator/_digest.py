"""What ranks compare in place of something larger."""

from __future__ import annotations

import hashlib
from typing import Any


def digest(what: Any, size: int = 16) -> bytes:
    """Return so many bytes that are equal on two ranks where the ``repr`` of something is.

    A pickle would not do: it tells equal values apart by which of their parts are one object.

    Example:
        >>> digest(("we", "we")) == digest(("we", "".join(["w", "e"])))
        True
    """
    return hashlib.blake2b(repr(what).encode(), digest_size=size).digest()


def digest_numbers(what: Any) -> tuple[int, int]:
    """Return a digest of 16 bytes as two numbers."""
    both = digest(what)
    return int.from_bytes(both[:8], "little"), int.from_bytes(both[8:], "little")
