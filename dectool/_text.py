"""Wording of messages: nearest names, lists that stay short, units."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a sentence that offers the known names nearest to ``name`` in any case, or all.

    Example:
        >>> nearest("rign", ["ring", "star"])
        "did you mean 'ring'?"
    """
    names = sorted(known)
    by_lower = {known_name.lower(): known_name for known_name in names}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(repr(by_lower[c]) for c in close)}?"
    return f"known: {', '.join(names)}"


def listing(items: Sequence[object], most: int = 8) -> str:
    """Return the items with commas between, cut after ``most``.

    Example:
        >>> listing([1, 2, 3], most=2)
        '1, 2, ... (3 in all)'
    """
    if not items:
        return "none"
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown}, ... ({len(items)} in all)"
