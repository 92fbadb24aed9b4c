"""The conformance suite that every backend passes, ours or a third party's.

A backend is done when every check passes for a :class:`Runner` of it:

.. code-block:: python

    import pytest
    from dectool.testing import CHECKS

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
    def test_conformance(check):
        check(my_runner)

:func:`check_random_programs` compares it with another backend on random programs besides.

Example:
    >>> from dectool.testing import CHECKS, SIM
    >>> [check.name for check in CHECKS if check.name.startswith("broadcast")]
    ['broadcast_hands_out_what_the_root_holds']
    >>> CHECKS[0](SIM)
"""

from dectool.testing import (
    _arrays as _arrays,
    _chance as _chance,
    _collectives as _collectives,
    _compressed as _compressed,
    _compressed_edges as _compressed_edges,
    _errors as _errors,
    _fused as _fused,
    _groups as _groups,
    _messages as _messages,
    _missing as _missing,
    _neighborhood as _neighborhood,
    _requests as _requests,
    _windows as _windows,
)
from dectool.testing._check import ALL, Check as Check
from dectool.testing._compare import assert_same_bits as assert_same_bits
from dectool.testing._runner import (
    SIM as SIM,
    STACKED as STACKED,
    BackendRunner as BackendRunner,
    Runner as Runner,
)
from dectool.testing._scripts import (
    Draw as Draw,
    Script as Script,
    SeededDraw as SeededDraw,
    check_random_programs as check_random_programs,
    random_script as random_script,
    run_script as run_script,
)

CHECKS: tuple[Check, ...] = tuple(ALL)
"""The suite: each check raises an error unless the backend of its runner conforms."""

__all__ = [
    "CHECKS",
    "SIM",
    "STACKED",
    "BackendRunner",
    "Check",
    "Draw",
    "Runner",
    "Script",
    "SeededDraw",
    "assert_same_bits",
    "check_random_programs",
    "random_script",
    "run_script",
]
