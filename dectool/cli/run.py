"""``dectool run``: a function of a file, on many ranks."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

import dectool
from dectool._text import nearest
from dectool.cli import _options as options, _specs as specs
from dectool.cli._faults import check_detection, faults
from dectool.cli._output import check_apart, check_target, console, number
from dectool.errors import ArgumentError, DataError, DectoolError
from dectool.run import DETECTION

_RANKS = 4
_SHOWN = 16
_WIDTH = 72


def run(
    file: Annotated[Path, typer.Argument(help="Python file with the function.")],
    n: options.Ranks = None,
    function: Annotated[
        str, typer.Option(metavar="NAME", help="Function of a communicator.")
    ] = "program",
    topology: options.Graph = "ring",
    weights: options.Weights = None,
    backend: options.Backend = "sim",
    network: options.Network = None,
    compute: options.Compute = None,
    fault: options.Faults = None,
    detection: options.Detection = DETECTION,
    missing: options.Missing = "error",
    seed: options.Seed = 0,
    ranks_per_node: options.RanksPerNode = None,
    hosts: options.Hosts = None,
    launcher: options.Launcher = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write what happened, for Perfetto (sim only).", show_default=False
        ),
    ] = None,
    debug: options.Debug = False,
) -> None:
    """Run FILE's function program(comm) on N ranks (4 unless -n, topology or hosts say)."""
    check_detection(detection, fault)
    check_target("--trace", trace)
    check_apart(("FILE", file), ("--trace", trace))
    names, ranks = options.split_hosts(hosts, _RANKS)
    graph = specs.topology(topology, n, weights=weights, default=ranks)
    network_model, compute_model = specs.network(network), specs.compute(compute)
    with _folder_on_path(file), _placed(file):
        result = dectool.run(
            _function(file, function),
            backend=backend,
            topology=graph,
            network=network_model,
            compute=compute_model,
            faults=faults(fault),
            detection=detection,
            missing=missing,
            seed=seed,
            ranks_per_node=ranks_per_node,
            hosts=names,
            launcher=launcher,
            trace=trace is not None,
        )
    _show(result, f"{file.name}: {function} on a {graph.name}, {backend}")
    if result.faults is not None:
        console().print(str(result.faults))
    if trace is not None and result.trace is not None:
        console().print(f"trace: {result.trace.to_chrome(trace)} (open it in ui.perfetto.dev)")


def _function(file: Path, name: str) -> Callable[..., Any]:
    """Import a file and return one of its functions."""
    module = _imported(file)
    found = getattr(module, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    own = [k for k, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__]
    there = nearest(name, own) if own else f"define one: def {name}(comm): ..."
    raise ArgumentError(f"{file} has no function {name!r} (--function); {there}")


def _imported(file: Path) -> ModuleType:
    if file.suffix != ".py":
        raise ArgumentError(f"{file} is no Python file; its name must end in .py")
    # A name of its own, so that random.py hides no module; sys.modules, since dataclasses look.
    name = f"_dectool_run_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise DataError(f"{error.filename}, line {error.lineno}: {error.msg}") from error
    return module


@contextmanager
def _folder_on_path(file: Path) -> Iterator[None]:
    """Let the file import its neighbours, as a script does; programs may do so while they run."""
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


@contextmanager
def _placed(file: Path) -> Iterator[None]:
    """Note on an error that is not ours the last line of the file that was reached."""
    try:
        yield
    except DectoolError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f.lineno for f in frames if Path(f.filename).resolve() == file.resolve()]
        if lines:
            error.add_note(f"{file}, line {lines[-1]}")
        raise


def _show(result: dectool.Result, title: str) -> None:
    import numpy as np
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("rank", justify="right")
    table.add_column("value")
    table.add_column("seconds", justify="right")
    with np.printoptions(threshold=8, edgeitems=3, precision=6):
        for rank in range(min(len(result.values), _SHOWN)):
            seconds = number(float(result.times[rank]))
            table.add_row(str(rank), _short(result.values[rank]), seconds)
    if len(result.values) > _SHOWN:
        table.add_row("...", f"({len(result.values)} ranks in all)", "")
    out = console()
    out.print(table)
    out.print(
        f"time {number(result.time)} s, {number(result.messages)} messages, "
        f"{number(result.bytes)} bytes"
    )


def _short(value: Any) -> str:
    from rich.markup import escape

    text = " ".join(repr(value).split())
    return escape(text if len(text) <= _WIDTH else f"{text[: _WIDTH - 4]} ...")
