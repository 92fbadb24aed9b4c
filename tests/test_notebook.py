"""A notebook whose cells define functions and run them, on each kind of backend."""

from __future__ import annotations

import pytest

nbclient = pytest.importorskip("nbclient", reason="needs the extra dev")
nbformat = pytest.importorskip("nbformat", reason="needs the extra dev")

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
