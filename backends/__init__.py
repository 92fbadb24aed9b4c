"""Real backends: communicators over MPI and NCCL, imported as ``dectool.backends``.

None is written yet; :mod:`dectool.sim` holds the two simulated ones.
"""

if __name__ == "backends":
    raise ImportError("import dectool.backends, not backends: else every class exists twice")

__all__: list[str] = []
