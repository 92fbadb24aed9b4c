"""The command line, called in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from dectool.cli import app

Cli = Callable[..., Result]


@pytest.fixture
def cli() -> Cli:
    """Return a function that runs ``dectool`` with the words of a line, and more words."""
    runner = CliRunner()

    def call(line: str, *more: object) -> Result:
        return runner.invoke(app, [*line.split(), *map(str, more)])

    return call


@pytest.fixture
def refused(cli: Cli) -> Callable[..., str]:
    """Return a function that runs what must be refused, and returns the one paragraph."""

    def call(line: str, *more: object, status: int = 2) -> str:
        result = cli(line, *more)
        assert result.exit_code == status, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("Error: ")
        assert "Traceback" not in result.stderr
        return " ".join(result.stderr.split())

    return call
