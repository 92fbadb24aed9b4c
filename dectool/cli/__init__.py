"""The command line: ``dectool run``, ``solve``, ``topology`` and ``doctor``."""

from dectool.cli._app import app as app, main as main

__all__ = ["app", "main"]
