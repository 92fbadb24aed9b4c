"""Real backends, imported as ``dectool.backends``: MPI; :mod:`dectool.sim` holds the simulated."""

if __name__ == "backends":
    raise ImportError("import dectool.backends, not backends: else every class exists twice")

__all__: list[str] = []
