"""The command line: ``dectool run``, ``solve``, ``topology`` and ``doctor``."""

__all__: list[str] = []
