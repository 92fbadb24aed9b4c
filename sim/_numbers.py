"""Numbers that models and faults are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool.errors import ArgumentTypeError


def check_number(who: str, name: str, value: Any) -> None:
    """Refuse what is no real number.

    Args:
        who: Whose argument it is.
        name: Name of the argument.
        value: What was given.

    Raises:
        ArgumentTypeError: It is no number, or several.

    Example:
        >>> check_number("Constant", "seconds", 0.5)
    """
    wrong = isinstance(value, (bool, np.bool_, str, bytes)) or not hasattr(value, "__float__")
    if wrong or np.ndim(value) or np.iscomplexobj(value):
        raise ArgumentTypeError(f"{who}: {name}={value!r} must be a number")
