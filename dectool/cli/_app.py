"""The application: its commands, and what holds for all of them."""

from __future__ import annotations

from typing import Annotated

import typer

import dectool
from dectool.cli import _errors
from dectool.cli.doctor import doctor
from dectool.cli.run import run
from dectool.cli.solve import solve
from dectool.cli.topology import topology

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (run, solve, topology, doctor):
    app.command()(_errors.reported(_command))


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"dectool {dectool.__version__}")
        raise typer.Exit


@app.callback()
def _entry(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Decentralized optimization: write an algorithm once, run it stacked or simulated."""
    del version
    _errors.show_tracebacks(debug)


def main() -> None:
    """Run the ``dectool`` command."""
    app(prog_name="dectool")
