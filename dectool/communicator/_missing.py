"""What stands in place of a message that will never come, and what an average makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, final

from dectool._text import nearest
from dectool.communicator._report import describe_channel
from dectool.errors import ArgumentError, ArgumentTypeError, MessageLostError, PeerLostError

POLICIES = ("error", "renormalize", "self")
"""What a neighbour average may do about a missing neighbour."""


@final
class Missing:
    """A message that was lost, in the place of its parcel; to read it is an error.

    Args:
        key: Source, destination and channel, with the ranks' numbers in the world.
        reason: Why, in words that follow "rank 3": "crashed at t = 2 s".
        peer: Whether the source itself is gone, not its message alone.
        told: When the receiver was told, in seconds.
    """

    __slots__ = ("key", "peer", "reason", "told")

    def __init__(self, key: tuple[int, int, Any], reason: str, told: float, *, peer: bool) -> None:
        self.key = key
        self.reason = reason
        self.told = told
        self.peer = peer

    def error(self) -> MessageLostError:
        """Return the error that reading it raises."""
        source, dest, channel = self.key
        operation = describe_channel(channel)
        text = (
            f"rank {dest}: {operation} gets nothing from rank {source}, {self.reason} (noticed at "
            f"t = {self.told:.9g} s); "
        )
        kind = PeerLostError if self.peer else MessageLostError
        if "neighbor" in operation or operation == "pair_gossip":
            return kind(f"{text}pass missing='self' or 'renormalize', or catch {kind.__name__}")
        return kind(f"{text}catch {kind.__name__} and go on without it")

    def _raise(self) -> NoReturn:
        raise self.error()

    @property
    def buffers(self) -> Any:
        """Of a parcel, its data."""
        self._raise()

    @property
    def layout(self) -> Any:
        """Of a parcel, what the data are."""
        self._raise()

    @property
    def sequence(self) -> Any:
        """Of a parcel, the number of the operation."""
        self._raise()

    @property
    def nbytes(self) -> Any:
        """Of a parcel, its size."""
        self._raise()


def checked_policy(policy: Any) -> str:
    """Return the policy, or say which there are."""
    if not isinstance(policy, str):
        raise ArgumentTypeError(
            f"missing is a {type(policy).__name__}; give one of {', '.join(map(repr, POLICIES))}"
        )
    if policy not in POLICIES:
        raise ArgumentError(f"missing={policy!r} is no policy; {nearest(policy, POLICIES)}")
    return policy


def without(
    weights: Sequence[float], present: Sequence[bool], missing: Sequence[Missing]
) -> tuple[float, ...]:
    """Return the weights of those present, rescaled to the sum of all.

    Args:
        weights: Of each term, in order.
        present: Which terms are there.
        missing: Those that are not.

    Raises:
        MessageLostError: The weights of those present do not sum to anything to be rescaled.

    Example:
        >>> without((0.25, 0.5, 0.25), (True, True, False), ())
        (0.333..., 0.666...)
    """
    kept = [weight for weight, there in zip(weights, present, strict=True) if there]
    total = sum(kept)
    # Weights of both signs may cancel but for rounding.
    if abs(total) <= 1e-12 * sum(map(abs, kept)):
        raise missing[0].error()
    scale = sum(weights) / total
    return tuple(weight * scale for weight in kept)
