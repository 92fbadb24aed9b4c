"""What a check is: a function of a runner that raises when the backend is wrong."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import final

import numpy as np

from dectool.errors import UnsupportedOperation
from dectool.testing._runner import Runner

SIZES = (1, 2, 3, 5, 8)
"""Numbers of ranks that the checks use."""


@final
class Check:
    """One part of the conformance suite; call it with a runner.

    Args:
        name: What must hold, in words joined by underscores.
        needs: Operations without which the check is skipped, when the runner lists them.
        body: Raises an error unless the backend conforms.
    """

    def __init__(self, name: str, needs: frozenset[str], body: Callable[[Runner], None]) -> None:
        self.name = name
        self.needs = needs
        self._body = body
        self.__doc__ = body.__doc__

    def __repr__(self) -> str:
        return f"<Check: {self.name}>"

    def __call__(self, runner: Runner) -> None:
        """Run the check.

        Raises:
            AssertionError: The backend does something else than the interface says.
            unittest.SkipTest: The runner lists as unsupported what the check needs, and the
                backend does refuse it; pytest counts that as skipped.
        """
        missing = self.needs.intersection(runner.unsupported)
        # Sums of infinities are meant; their warnings would hide what matters.
        with np.errstate(all="ignore"):
            self._run(runner, missing)

    def _run(self, runner: Runner, missing: frozenset[str]) -> None:
        if not missing:
            self._body(runner)
            return
        try:
            self._body(runner)
        except UnsupportedOperation as refusal:
            raise unittest.SkipTest(f"{', '.join(sorted(missing))}: {refusal}") from None
        raise AssertionError(
            f"the runner lists {', '.join(sorted(missing))} as unsupported, but {self.name} "
            "passes: take the names off the list"
        )


ALL: list[Check] = []


def check(*needs: str) -> Callable[[Callable[[Runner], None]], Check]:
    """Make a function a check of the suite.

    Args:
        needs: Operations that backends may be without.
    """

    def register(body: Callable[[Runner], None]) -> Check:
        made = Check(body.__name__, frozenset(needs), body)
        ALL.append(made)
        return made

    return register
