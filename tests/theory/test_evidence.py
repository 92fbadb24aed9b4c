"""Evidence that a user makes of numbers of their own."""

import numpy as np
import pytest

from dectool.errors import ArgumentError
from dectool.theory import Check, Curve, Evidence


def test_numbers_of_arrays_make_a_verdict():
    measured, predicted = np.array([1.0, 2.0]), np.array([1.0, 2.1])
    checks = [Check.equal(str(k), measured[k], predicted[k], np.float64(0.01)) for k in (0, 1)]
    found = [bool(check) for check in checks]
    assert found == [True, False]
    assert not Evidence("both are equal", tuple(checks)).verdict
    assert bool(Evidence("the first are equal", (checks[0],)).verdict)


def test_what_is_not_a_number_agrees_with_nothing():
    assert not Check.equal("rate", np.nan, 1.0, tolerance=1.0)
    assert not Check.at_most("rate", np.nan, 1.0)
    assert not Check.at_least("rate", np.nan, 1.0)


def test_a_bound_says_by_how_much_it_is_broken():
    assert str(Check.at_most("order", 0.9, 1.0)) == "order: measured 0.9, at most 1"
    nearly = Check.at_most("order", 1.01, 1.0, tolerance=0.05)
    assert nearly
    assert str(nearly).endswith("at most 1, broken by 0.01 (tolerance 0.05)")
    assert not Check.at_least("speed-up", 1.2, 1.3)


def test_a_curve_has_as_many_values_as_places():
    with pytest.raises(ArgumentError, match="measured has shape"):
        Curve("rate", np.arange(3.0), np.arange(4.0))


@pytest.mark.parametrize("scale", [np.inf, np.nan])
def test_relative_to_what_is_no_size_nothing_agrees(scale):
    assert not Check.equal("iterates", 1.0, 2.0, tolerance=1.0, scale=scale)
    assert not Check.equal("iterates", 1.0, np.inf, tolerance=1.0)


def test_a_scale_has_no_sign():
    with pytest.raises(ArgumentError, match=r"scale=-2\.0 of 'rate' is negative"):
        Check.equal("rate", 1.0, 9.0, tolerance=0.1, scale=-2.0)


def test_every_number_keeps_a_bound_that_is_infinite():
    assert Check.at_most("error", 5.0, np.inf)
    assert Check.at_least("error", 5.0, -np.inf)
    assert not Check.at_most("error", np.nan, np.inf)
    assert not Check.at_most("error", np.inf, 5.0)


def test_nothing_is_no_evidence():
    with pytest.raises(ArgumentError, match="'all is well' has no checks; give one or more"):
        Evidence("all is well", ())
    with pytest.raises(ArgumentError, match="'rate' has nothing to draw"):
        Curve("rate", np.arange(3.0))
