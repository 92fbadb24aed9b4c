"""Importing optional packages, with an error that says how to install them."""

from __future__ import annotations

import importlib
from types import ModuleType

from dectool.errors import MissingDependencyError


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import ``module`` or say which extra of dectool brings it.

    Raises:
        MissingDependencyError: The module is not installed.

    Example:
        >>> require("math", extra="plot", purpose="drawing").pi > 3
        True
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(
            f"{purpose} needs {package}, which is not installed. "
            f"Install it with: pip install 'dectool[{extra}]'"
        ) from error
