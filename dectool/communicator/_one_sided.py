"""Opening one-sided windows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from dectool.communicator._arrays import Leaf
from dectool.communicator._cells import Opening, Store, whole
from dectool.communicator._core import Pending
from dectool.communicator._digest import digest
from dectool.communicator._encode import checked_compressor, encode
from dectool.communicator._hierarchical import HierarchicalOperations
from dectool.communicator._parcel import Buffer, Layout, Parcel, own
from dectool.communicator._window import Window
from dectool.errors import (
    ArgumentError,
    ArgumentTypeError,
    ContractError,
    UnsupportedOperation,
)
from dectool.topology import Topology

_TEXT = 160
_GREETING = Layout((Leaf("numpy", "uint8", (256,)),), None)


class OneSidedOperations(HierarchicalOperations):
    """The part of a communicator that makes windows."""

    _has_windows: ClassVar[bool] = False
    _windows: dict[str, Window]

    def window(
        self,
        x: Any,
        name: str,
        topology: Topology | None = None,
        *,
        push_sum: bool = False,
        zero_init: bool | None = None,
        compressor: Any = None,
    ) -> Window:
        """Open a one-sided window; all neighbours call it with the same arguments.

        Args:
            x: This rank's first value: an array of floats or complex numbers, or a container of
                them. It is copied.
            name: Tells open windows apart.
            topology: Gives one slot per in-neighbour, and the weights of ``update``; default:
                ``comm.topology``. For a schedule, pass the union of its steps and name the
                destinations of each.
            push_sum: Carry a weight along with the value, 1 at first: see
                :meth:`Window.accumulate`.
            zero_init: Whether slots are zero at first; default: with ``push_sum``. Otherwise they
                hold a copy of this rank's own ``x``, so that an update before anything has come
                changes nothing.
            compressor: A :class:`dectool.compression.Compressor` for what is sent; this rank's
                own value stays exact.

        Returns:
            A :class:`Window`, to be used in a ``with`` statement, at whose end all neighbours
            meet.

        Raises:
            ArgumentError: A window of this name is open, or the arguments do not go together.
            ArgumentTypeError: ``x`` holds integers or bools, or ``name`` is no string.
            ContractError: Neighbours pass other arrays or options.
            UnsupportedOperation: With ``backend="stacked"``.
        """
        if not self._has_windows:
            raise self._without_windows(name)
        if not isinstance(name, str):
            raise ArgumentTypeError(f"window: name is {name!r}; pass a string, as in name='params'")
        if name in self._windows:
            raise ArgumentError(
                f"window {name!r} is open already; free it first, or choose another name"
            )
        chosen = self.topology if topology is None else self._checked_topology(topology)
        if push_sum and (compressor is not None or zero_init is False):
            what = "zero_init=False" if compressor is None else f"compressor={compressor!r}"
            raise ArgumentError(
                f"window {name!r}: push_sum=True with {what} would not conserve mass; leave it out"
            )
        buffers, layout = self._pack(x)
        layout.require_averageable(f"window {name!r}")
        opening = Opening(
            name=name,
            buffers=own(whole(buffers)),
            layout=layout,
            sources=tuple(chosen.in_neighbors(self.rank)),
            destinations=tuple(chosen.out_neighbors(self.rank)),
            zero=push_sum if zero_init is None else bool(zero_init),
            push_sum=push_sum,
            decode=self._decoder(buffers, layout, compressor, name),
        )
        store = self._open_store(opening)
        window = Window(self, name, store, chosen, push_sum=push_sum, compressor=compressor)
        try:
            options = (bool(push_sum), opening.zero, getattr(compressor, "name", None))
            self._greet(store, opening, options)
        except BaseException:
            store.close()
            raise
        self._windows[name] = window
        return window

    @property
    def windows(self) -> Mapping[str, Window]:
        """The open windows of this rank by name, which cannot be changed through this."""
        return MappingProxyType(self._windows if self._has_windows else {})

    def _open_store(self, opening: Opening) -> Store:
        """Make this rank's part of a window; given by a backend that has windows."""
        raise self._without_windows(opening.name)

    def _without_windows(self, name: Any) -> UnsupportedOperation:
        return UnsupportedOperation(
            f"window({name!r}): backend {self.backend!r} has no one-sided windows, since its "
            "ranks move in step; use backend='sim' or 'mpi', or neighbor_allreduce here"
        )

    def _arrived(self, pending: Pending) -> bool:
        """Tell, for keeping lists short, whether something is complete already."""
        del pending
        return False

    def _decoder(
        self, buffers: tuple[Buffer, ...], layout: Layout, compressor: Any, name: str
    ) -> Any:
        if compressor is None:
            return lambda parcel: parcel.buffers
        checked = checked_compressor(compressor, f"window {name!r}")
        if checked.needs_reference:
            raise ArgumentError(
                f"window {name!r}: {checked.name} is decompressed beside a near vector, and a "
                "slot has none that both ranks know; use another compressor"
            )
        like = encode(buffers, layout, checked, self.rng("compression", 0), (), "window")
        return lambda parcel: like.received(parcel.buffers, like.decompressed())

    def _greet(self, store: Store, opening: Opening, options: tuple[Any, ...]) -> None:
        """Exchange with all neighbours how to reach each other's parts; check that all agree."""
        who = f"window({opening.name!r})"
        mine = digest((opening.layout.signature, options))
        text = f"{opening.layout}, push_sum={options[0]}, zero_init={options[1]}"
        if options[2] is not None:
            text += f", compressor={options[2]}"
        words = text.encode()[:_TEXT]
        invitation = store.invitation
        told = mine + bytes([len(invitation)]) + invitation.ljust(64, b"\0") + words
        data = np.zeros(256, np.uint8)
        data[: len(told)] = np.frombuffer(told, np.uint8)
        channel = (*self._context, "window", opening.name)
        peers = sorted({*opening.sources, *opening.destinations})
        for peer in peers:
            self._post(Parcel((data,), _GREETING), peer, channel)
        found = self._await([self._expect(peer, channel) for peer in peers])
        invitations = {}
        for peer, parcel in zip(peers, found, strict=True):
            heard = parcel.buffers[0].tobytes()
            if heard[:16] != mine:
                theirs = heard[81:].rstrip(b"\0").decode(errors="replace")
                raise ContractError(
                    f"{who}: ranks {self.rank} and {peer} open it differently: {text} and "
                    f"{theirs}; neighbours must pass the same shapes, dtypes and options"
                )
            invitations[peer] = heard[17 : 17 + heard[16]]
        store.connect(invitations)
