"""The launcher, and the environment variables by which it and its processes know each other."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from dectool.errors import BackendError

RANK_VARIABLES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")

_OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_osc": "^ucx",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def inside_job() -> bool:
    """Tell whether this process was started by ``mpiexec``, ``mpirun`` or ``srun``."""
    return any(name in os.environ for name in RANK_VARIABLES)


def told_size() -> int:
    """Return how many processes the launcher says that it has started."""
    return int(next((os.environ[name] for name in SIZE_VARIABLES if name in os.environ), "1"))


def mpiexec() -> str:
    """Return the launcher that belongs to the MPI of this environment.

    Raises:
        BackendError: There is none.
    """
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise BackendError(
            "no mpiexec beside Python and none on the PATH; install one with: "
            "pip install 'dectool[mpi]'"
        )
    return found


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a job: one BLAS thread per rank unless the user chose."""
    variables = {**defaults(), **os.environ, **more}
    if variables.get("PYTHONPATH"):
        # Jobs start in another folder.
        folders = variables["PYTHONPATH"].split(os.pathsep)
        variables["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, folders))
    return variables


def defaults() -> dict[str, str]:
    """Return variables of a job that the user may have set otherwise."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**_OPEN_MPI, **dict.fromkeys(threads, "1")}
