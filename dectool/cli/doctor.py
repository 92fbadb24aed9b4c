"""``dectool doctor``: what is installed, what works, and how to get the rest."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer

import dectool
from dectool.cli import _options as options
from dectool.cli._errors import FAILED, describe
from dectool.cli._output import console
from dectool.run import BACKENDS

if TYPE_CHECKING:
    from dectool import Communicator

_CORE = ("stacked", "sim")
_RANKS = 4
_SECONDS = 60


class Package(NamedTuple):
    """A package: how to import it, which extra brings it (none: the core), what it is for."""

    name: str
    module: str
    extra: str | None
    purpose: str

    @property
    def remedy(self) -> str:
        """The line that installs it."""
        if self.extra == "":
            return f"pip install {self.name}"
        return f"pip install 'dectool[{self.extra}]'" if self.extra else "pip install dectool"


PACKAGES = (
    Package("numpy", "numpy", None, "arrays"),
    Package("scipy", "scipy.sparse", None, "mixing matrices"),
    Package("networkx", "networkx", None, "graphs"),
    Package("simpy", "simpy", None, "simulation"),
    Package("greenlet", "greenlet", None, "simulation"),
    Package("typer", "typer", None, "this command"),
    Package("rich", "rich.console", None, "tables and progress bars"),
    Package("scikit-learn", "sklearn.datasets", "data", "breast_cancer, digits, libsvm files"),
    Package("pandas", "pandas", "plot", "History.to_pandas"),
    Package("matplotlib", "matplotlib.pyplot", "plot", "pictures"),
    Package("torch", "torch", "torch", "PyTorch arrays"),
    Package("jupyterlab", "jupyterlab", "notebooks", "notebooks"),
    Package("ipywidgets", "ipywidgets", "notebooks", "notebooks"),
    Package("mpi4py", "mpi4py.MPI", "mpi", 'backend="mpi"'),
    Package("cloudpickle", "cloudpickle", "mpi", 'backend="mpi"'),
    Package("cupy-cuda12x", "cupy", "", 'backend="nccl" (planned)'),
)


def doctor(debug: options.Debug = False) -> None:
    """Say what is installed, what works, and how to get the rest; fails if the core is broken."""
    from rich.table import Table

    out = console()
    out.print(f"dectool {dectool.__version__}, Python {platform.python_version()}, ", end="")
    out.print(f"{platform.system()} {platform.machine()}, {sys.executable}", soft_wrap=True)
    with ThreadPoolExecutor(4) as pool:
        faults = dict(zip(PACKAGES, pool.map(fault, PACKAGES), strict=True))
    table = Table(title="Packages", title_justify="left")
    for heading in ("package", "version", "for", "state"):
        table.add_column(heading)
    for package, wrong in faults.items():
        state = wrong or "works"
        table.add_row(package.name, version(package.name) or "-", package.purpose, state)
    out.print(table)
    backends = backend_faults([name for name in BACKENDS if name in _CORE or _installed(name)])
    for name, wrong in backends.items():
        out.print(f"backend {name}: {wrong or f'{_RANKS} ranks average rightly'}")
    broken = [p for p, wrong in faults.items() if wrong]
    for remedy in dict.fromkeys(package.remedy for package in broken):
        brings = ", ".join(p.name for p in broken if p.remedy == remedy)
        out.print(f"{remedy}    # {brings}", soft_wrap=True, markup=False)
    core = [package.name for package in broken if package.extra is None]
    if core or any(backends[name] for name in _CORE):
        out.print("The core is broken.", style="bold red")
        raise typer.Exit(FAILED)
    out.print("The core works.", style="bold green")


def version(name: str) -> str | None:
    """Return the version of an installed package.

    Example:
        >>> version("no-such-package") is None
        True
    """
    if name == "cupy-cuda12x":
        found = [d.version for d in metadata.distributions() if d.name.startswith("cupy")]
        return found[0] if found else None
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def fault(package: Package) -> str | None:
    """Return what is wrong with a package: missing, or its import fails (in its own process)."""
    if version(package.name) is None:
        return "missing"
    try:
        # An MPI that does not fit aborts the process that imports it.
        done = subprocess.run(
            [sys.executable, "-c", f"import {package.module}"],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"its import took more than {_SECONDS} s"
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return f"broken: {lines[-1] if lines else f'import ended with status {done.returncode}'}"


def _installed(backend: str) -> bool:
    needed = [p.name for p in PACKAGES if p.extra == backend]
    return bool(needed) and all(version(name) is not None for name in needed)


def backend_faults(names: Sequence[str]) -> dict[str, str | None]:
    """Return what is wrong with each backend: a program is run whose answer is known.

    Example:
        >>> backend_faults(["stacked", "sim"])
        {'stacked': None, 'sim': None}
    """
    graph = dectool.topology.ring(_RANKS)
    means = graph.to_dense() @ np.arange(float(_RANKS))
    faults: dict[str, str | None] = {}
    bits = set()
    for name in names:
        try:
            values = dectool.run(_program, backend=name, topology=graph).values
            found = np.stack([np.asarray(value) for value in values])
        except Exception as error:
            faults[name] = f"broken: {describe(error)}"
            continue
        right = found.shape == (_RANKS, 1) and np.allclose(found, means[:, None])
        bits.add(found.tobytes())
        faults[name] = None if right else f"wrong: the averages {means} came out as {found}"
        if faults[name] is None and len(bits) > 1:
            faults[name] = "wrong: its bits differ from those of the other backends"
    return faults


def _program(comm: Communicator) -> Any:
    return comm.neighbor_allreduce(1.0 * np.asarray(comm.rank)[..., None])
