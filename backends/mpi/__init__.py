"""The MPI backend: ranks are processes, started here or by ``mpiexec``."""

from dectool.backends.mpi._launch import run_mpi as run_mpi
from dectool.backends.mpi._processes import Processes as Processes
from dectool.backends.mpi._variables import inside_job as inside_job

__all__ = ["Processes", "inside_job", "run_mpi"]
