"""Writing to neighbours through a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dectool.communicator import _cells
from dectool.communicator._cells import Kind, Remote
from dectool.communicator._parcel import Buffer, Parcel, own, unpack
from dectool.communicator._plans import checked_weight
from dectool.communicator._request import Request
from dectool.communicator._window_base import WindowBase
from dectool.errors import ArgumentError, ArgumentTypeError, WindowError

_TOLERANCE = 1e-9
"""How far shares may be from summing to 1."""


class WindowWriting(WindowBase):
    """Puts and accumulates."""

    def iput(
        self, x: Any = None, *, dst_weights: Any = None, self_weight: float | None = None
    ) -> Request[None]:
        """Start a :meth:`put`; ``x`` may be changed as soon as this returns."""
        if self.push_sum:
            raise WindowError(
                f"window {self.name!r} carries push-sum weights, and a put overwrites what the "
                "neighbour has not collected yet: mass would be lost. Use accumulate"
            )
        return self._send("put", x, self._factors(dst_weights, 1.0), self_weight)

    def put(
        self, x: Any = None, *, dst_weights: Any = None, self_weight: float | None = None
    ) -> None:
        r"""Write ``x`` into this rank's slots at its out-neighbours: :math:`s_{ij} = w_{ij} x_j`.

        Waits until it is visible there; :meth:`iput` does not.

        Args:
            x: Becomes this rank's own value; an array or container as the window was made of.
                Default: the value it has.
            dst_weights: ``{destination: factor}``, or a sequence of destinations; default: all
                out-neighbours, with factor 1.
            self_weight: By what this rank's own value is scaled afterwards; default 1.

        Raises:
            ArgumentError: A destination is no out-neighbour.
            ContractError: ``x`` has another structure, shape or dtype than the window.
            WindowError: The window was freed, or carries push-sum weights.
        """
        self.iput(x, dst_weights=dst_weights, self_weight=self_weight).wait()

    def iaccumulate(
        self, x: Any = None, *, dst_weights: Any = None, self_weight: float | None = None
    ) -> Request[None]:
        """Start an :meth:`accumulate`; ``x`` may be changed as soon as this returns."""
        if not self.push_sum:
            return self._send("accumulate", x, self._factors(dst_weights, 1.0), self_weight)
        self._check_open()
        known: Sequence[int] = self._plan.destinations
        if self_weight is None and dst_weights is None:
            known = self._there()
        share = 1.0 / (len(known) + 1)
        factors = self._chosen(dst_weights, share, known, "dst_weights", "out-neighbors")
        kept = share if self_weight is None else checked_weight(self_weight, "self_weight")
        total = kept + sum(factors.values())
        if abs(total - 1.0) > _TOLERANCE:
            raise ArgumentError(
                f"window {self.name!r}: self_weight and dst_weights sum to {total:.12g}, and the "
                f"shares of push-sum must sum to 1, or mass is {'made' if total > 1 else 'lost'}; "
                "give both, for example 1 / (out-degree + 1) each"
            )
        return self._send("accumulate", x, factors, kept)

    def accumulate(
        self, x: Any = None, *, dst_weights: Any = None, self_weight: float | None = None
    ) -> None:
        r"""Add ``x`` to this rank's slots at its out-neighbours: :math:`s_{ij} += w_{ij} x_j`.

        With ``push_sum=True`` the weight goes with the value, each destination gets its share of
        both, and this rank keeps the share ``self_weight``; the shares must sum to 1. By default
        they are equal, and nobody gets one who is known to be gone, which is an error unless
        ``comm.missing`` says otherwise.

        Waits until it is visible there; :meth:`iaccumulate` does not.

        Args:
            x: Becomes this rank's own value before it is scaled; default: the value it has.
            dst_weights: As in :meth:`put`.
            self_weight: By what this rank's own value is scaled afterwards; default 1, with
                ``push_sum`` 1 / (out-degree + 1).

        Raises:
            ArgumentError: A destination is no out-neighbour, or shares do not sum to 1.
            ContractError: ``x`` has another structure, shape or dtype than the window.
            PeerLostError: In a simulation with faults, where an out-neighbour is known to be gone.
            WindowError: The window was freed.

        References:
            D. Kempe, A. Dobra & J. Gehrke, FOCS 2003 (push-sum).
        """
        self.iaccumulate(x, dst_weights=dst_weights, self_weight=self_weight).wait()

    def _there(self) -> list[int]:
        """Return the out-neighbours that are not known to be gone.

        Raises:
            PeerLostError: One is, and ``comm.missing`` is "error".
        """
        absent = self._store.absent()
        self._present([absent[dest] for dest in self._plan.destinations if dest in absent])
        return [dest for dest in self._plan.destinations if dest not in absent]

    def iadd(self, x: Any, ranks: Any) -> Request[None]:
        """Start an :meth:`add`; ``x`` may be changed as soon as this returns."""
        self._check_open()
        if self.push_sum:
            raise WindowError(
                f"window {self.name!r} carries push-sum weights, and to add to a value puts mass "
                "in. Use set, or accumulate(x), on the rank itself"
            )
        me, store = self._comm.rank, self._store
        factors = self._named(ranks)
        buffers = self._buffers(x)
        store.settle()
        if me in factors:
            with store.own.exclusive():
                _cells.increase(store.own, buffers, factors.pop(me), store.layout.dtypes)
                store.own.version += 1
        return self._ship("add", self._coded(buffers), factors, 0.0)

    def add(self, x: Any, ranks: Any) -> None:
        r"""Add ``x`` to the values themselves of some ranks: :math:`x_i = x_i + w_i \delta`.

        Unlike a put, it changes the value that others read, and needs no update there. Each value
        is changed at once, so no addition is lost, whoever else adds.

        Args:
            x: What is added; an array or container as the window was made of.
            ranks: ``{rank: factor}``, or a sequence of ranks: out-neighbours, or this rank.

        Raises:
            ArgumentError: One of ``ranks`` is neither this rank nor an out-neighbour.
            ContractError: ``x`` has another structure, shape or dtype than the window.
            WindowError: The window was freed, or carries push-sum weights.
        """
        self.iadd(x, ranks).wait()

    def _named(self, ranks: Any) -> dict[int, float]:
        """Return the factors of an addition, of which one may be this rank's own."""
        me, factors, mine = self._comm.rank, ranks, {}
        if not isinstance(ranks, Mapping):
            try:
                factors = dict.fromkeys(ranks, 1.0)
            except TypeError:
                raise ArgumentTypeError(
                    f"ranks is {ranks!r}; pass a dict of rank: factor, or a sequence of ranks"
                ) from None
        if me in factors:
            mine = {me: checked_weight(factors[me], f"ranks[{me}]")}
            factors = {rank: factor for rank, factor in factors.items() if rank != me}
        known = self._plan.destinations
        return {**mine, **self._chosen(factors, 1.0, known, "ranks", "out-neighbors")}

    def _send(
        self, kind: Kind, x: Any, factors: Mapping[int, float], self_weight: float | None
    ) -> Request[None]:
        kept = 1.0 if self_weight is None else checked_weight(self_weight, "self_weight")
        parcel = self._offer(x, kept)
        weight = self._store.own.weight
        if self.push_sum:
            self._store.own.weight = weight * kept
        return self._ship(kind, parcel, factors, weight)

    def _ship(
        self, kind: Kind, parcel: Parcel, factors: Mapping[int, float], weight: float
    ) -> Request[None]:
        now = self._comm.now()
        shares = [
            (dest, Remote(kind, factor, weight * factor if self.push_sum else 0.0, now))
            for dest, factor in self._in_turn(factors)
        ]
        for dest, _ in shares:
            self._sent[dest] += 1
        pending = self._store.send(parcel, shares, 8 if self.push_sum else 0)
        if len(self._outstanding) > 64:
            self._outstanding = [one for one in self._outstanding if not self._comm._arrived(one)]
        self._outstanding += pending
        return Request(self._comm, pending, self._arrived)

    def _offer(self, x: Any, kept: float) -> Parcel:
        """Make ``x`` this rank's own value, scaled; return what is to be sent of it."""
        self._check_open()
        store, layout = self._store, self._store.layout
        given = None if x is None else self._buffers(x)
        store.settle()
        value: tuple[Buffer, ...]
        with store.own.exclusive():
            if given is None:
                plain = kept == 1.0 and self._compressor is None
                value = store.own.buffers if plain else own(store.own.buffers)
            else:
                value = given
                store.injected(store.own.buffers, given)
            if given is not None or kept != 1.0:
                _cells.write(store.own, value, kept, layout.dtypes)
                store.own.version += 1
        return self._coded(value)

    def _coded(self, buffers: tuple[Buffer, ...]) -> Parcel:
        """Return what is sent for buffers: themselves, or what they are compressed to."""
        layout = self._store.layout
        if self._compressor is None:
            return Parcel(buffers, layout)
        x = unpack(buffers, layout)
        coded, _ = self._comm._coded(x, self._compressor, f"window {self.name!r}")
        return Parcel(coded.wire, coded.wire_layout)

    def _arrived(self, contents: Sequence[Any]) -> None:
        self._present(contents)
