"""Text forms of faults: ``crash:3,at=1.5``."""

from __future__ import annotations

from collections.abc import Sequence

from dectool import sim
from dectool.cli._specs import Form, made, real, whole, yes_or_no
from dectool.errors import ArgumentError
from dectool.run import DETECTION
from dectool.sim import Fault


def faults(texts: Sequence[str] | None) -> list[Fault]:
    """Return the faults of texts, one for each.

    Raises:
        ArgumentError: A text is no fault, or one with other arguments.

    Example:
        >>> faults(["crash:3,at=1.5", "late_join:4,at=2"])
        [Crash(rank=3, at=1.5, restart_after=None), LateJoin(rank=4, at=2.0)]
    """
    return [made("fault", text, FAULTS) for text in texts or ()]


def check_detection(detection: float, texts: Sequence[str] | None) -> None:
    """Refuse a time after which losses are noticed where nothing is lost.

    Args:
        detection: Seconds, as ``run`` takes them.
        texts: The faults.

    Raises:
        ArgumentError: It was chosen, and there is no fault.

    Example:
        >>> check_detection(0.5, ["message_loss:0.1"])
    """
    if not texts and detection != DETECTION:
        raise ArgumentError(
            f"--detection {detection:g} would change nothing, since nothing is lost without "
            "--fault, such as --fault message_loss:0.1"
        )


_ENDS = {"source": whole, "dest": whole}
_PERIOD = {"start": real, "stop": real}

FAULTS = {
    "message_loss": Form(
        sim.MessageLoss,
        {"probability": real, **_ENDS, "both": yes_or_no},
        "message_loss:0.1",
        ("probability",),
    ),
    "link_down": Form(
        sim.LinkDown,
        {**_ENDS, **_PERIOD, "both": yes_or_no},
        "link_down:0,1,start=1,stop=2",
        ("source", "dest"),
    ),
    "random_link_down": Form(
        sim.RandomLinkDown,
        {"mean_up": real, "mean_down": real, **_ENDS},
        "random_link_down:mean_up=10,mean_down=0.5",
        ("mean_up", "mean_down"),
    ),
    "slow_link": Form(
        sim.SlowLink, {"factor": real, **_ENDS, **_PERIOD}, "slow_link:10,source=0", ("factor",)
    ),
    "slow_period": Form(
        sim.SlowPeriod,
        {"rank": whole, "factor": real, **_PERIOD},
        "slow_period:3,factor=4,start=1,stop=2",
        ("rank", "factor"),
    ),
    "random_slow_periods": Form(
        sim.RandomSlowPeriods,
        {"factor": real, "mean_between": real, "mean_length": real, "rank": whole},
        "random_slow_periods:5,mean_between=10,mean_length=1",
        ("factor", "mean_between", "mean_length"),
    ),
    "crash": Form(
        sim.Crash,
        {"rank": whole, "at": real, "restart_after": real},
        "crash:3,at=1.5",
        ("rank", "at"),
    ),
    "random_crashes": Form(
        sim.RandomCrashes,
        {"mean_uptime": real, "restart_after": real, "most": whole, "rank": whole},
        "random_crashes:100,restart_after=5",
        ("mean_uptime",),
    ),
    "late_join": Form(
        sim.LateJoin, {"rank": whole, "at": real}, "late_join:3,at=1.5", ("rank", "at")
    ),
}
"""The faults that have a text form: all."""
