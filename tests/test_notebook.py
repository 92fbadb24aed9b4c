"""Cells that define functions and run them, on each kind of backend; and the notebooks we have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient", reason="needs the extra dev")
nbformat = pytest.importorskip("nbformat", reason="needs the extra dev")

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb"))

CELLS = [
    "import numpy as np, dectool\n"
    "scale = 2.0\n"
    "def f(comm):\n"
    "    if comm.rank == 3:\n"
    "        print('hello from a cell')\n"
    "    return float(comm.allreduce(np.array([scale * comm.rank]), 'sum')[0])",
    "dectool.run(f, n=4, backend=BACKEND).values",
    "def g(comm):\n    return comm.recv(0)\n"
    "try:\n"
    "    dectool.run(g, n=2, backend=BACKEND, timeout=1)\n"
    "except dectool.DeadlockError as error:\n"
    "    print(error)",
]


def executed(backend: str) -> list[str]:
    """Run the notebook; return what its cells show."""
    cells = [nbformat.v4.new_code_cell(c.replace("BACKEND", repr(backend))) for c in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=50, kernel_name="python3").execute()
    shown = []
    for cell in notebook.cells:
        outputs = [o.get("text") or o["data"]["text/plain"] for o in cell.outputs]
        shown.append("".join(outputs))
    return shown


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("backend", ["sim", "mpi"])
def test_a_cell_runs_its_function(backend: str) -> None:
    if backend == "mpi":
        pytest.importorskip("mpi4py", reason="needs the extra mpi: pip install 'dectool[mpi]'")
    _, values, deadlock = executed(backend)
    assert values.endswith("[12.0, 12.0, 12.0, 12.0]")
    assert ("[3] hello from a cell" in values) == (backend == "mpi")
    assert "in g: return comm.recv(0)" in deadlock


def outputs(cell: Any, kind: str) -> list[str]:
    """Return what a cell shows of a kind, "text/plain" (or printed) or "image/png"."""
    texts = [o["text"] for o in cell.outputs if o.output_type == "stream" and o.name == "stdout"]
    shown = [o["data"][kind] for o in cell.outputs if kind in o.get("data", {})]
    return [*(texts if kind == "text/plain" else []), *shown]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_theory_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = (path for path in NOTEBOOKS if path.stem == "validating_theory")
    # Small matrices, and other tests may run beside.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=250, kernel_name="python3").execute()
    checks = [cell for cell in notebook.cells if "\ncheck(" in f"\n{cell.source}"]
    assert len(checks) >= 10
    for cell in checks:
        (verdict,) = outputs(cell, "text/plain")[:1]
        head, *lines = verdict.strip().splitlines()
        assert "agrees" in head
        assert lines
        assert all(line.startswith("ok ") for line in lines)
        assert len(outputs(cell, "image/png")) == 1
    (summary,) = outputs(notebook.cells[-1], "text/plain")
    assert summary.strip().endswith(f"{len(checks)} of {len(checks)} agree")
