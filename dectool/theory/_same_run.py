"""Whether a history is of the run that theory speaks of."""

from __future__ import annotations

import json
from typing import Any

from dectool.algorithms import Algorithm
from dectool.errors import ArgumentError
from dectool.history import History
from dectool.problems import Problem


def check_run(history: History, algorithm: Algorithm, problem: Problem, topology: str) -> None:
    """Refuse a history of another run, of stochastic gradients, or of faults.

    Args:
        history: What was measured.
        algorithm: What theory speaks of.
        problem: Likewise.
        topology: Name of the topology, likewise.

    Raises:
        ArgumentError: It is of another run, had faults, or stochastic gradients.
    """
    expected = {
        "algorithm": algorithm.name,
        "parameters": algorithm.parameters(),
        "problem": problem.name,
        "topology": topology,
        "size": problem.size,
    }
    for name, value in expected.items():
        found = history.about[name]
        if found != value and _plain(found) != _plain(value):
            raise ArgumentError(
                f"the history is of {name} {found!r}, and the prediction of {value!r}; predict "
                "what was run"
            )
    if history.about.get("batch_size") is not None or history.faults is not None:
        raise ArgumentError(
            "the history is of stochastic gradients or of faults, and the prediction of neither; "
            "theory.steady_state says how far noise keeps the iterates from their limit"
        )


def _plain(value: Any) -> str:
    """Return a value as a saved history would have it."""
    return json.dumps(value, sort_keys=True, default=repr)
