"""Reading through a window: from neighbours, and what they have left here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dectool.communicator import _cells
from dectool.communicator._cells import Cell, Snapshot
from dectool.communicator._parcel import average, unpack
from dectool.communicator._request import Request
from dectool.communicator._window_base import WindowBase
from dectool.errors import WindowError


class WindowReading(WindowBase):
    """Gets, updates and collections, and what is here now."""

    def iget(self, *, src_weights: Any = None) -> Request[None]:
        """Start a :meth:`get`; slots are written when the request is complete."""
        if self.push_sum:
            raise WindowError(
                f"window {self.name!r} carries push-sum weights, and a get would double the "
                "neighbour's mass. Use accumulate on its side"
            )
        self._check_open()
        factors = self._chosen(src_weights, 1.0, self._plan.sources, "src_weights", "in-neighbors")
        self._store.settle()
        pending = self._store.read(list(factors))

        def finish(contents: Sequence[Snapshot]) -> None:
            dtypes = self._store.layout.dtypes
            present = self._present(contents)
            for (source, factor), content, there in zip(
                factors.items(), contents, present, strict=True
            ):
                if not there:
                    continue
                cell = self._store.slots[source]
                with cell.exclusive():
                    _cells.write(cell, content.buffers, factor, dtypes)
                    cell.version += 1
                    cell.time = content.time

        return Request(self._comm, pending, finish)

    def get(self, *, src_weights: Any = None) -> None:
        r"""Read the values of in-neighbours into this rank's slots: :math:`s_{ij} = w_{ij} x_j`.

        Args:
            src_weights: ``{source: factor}``, or a sequence of sources; default: all
                in-neighbours, with factor 1.

        Raises:
            ArgumentError: A source is no in-neighbour.
            MessageLostError: In a simulation with faults, unless ``comm.missing`` says otherwise:
                then the slot keeps what it has.
            WindowError: The window was freed, or carries push-sum weights.
        """
        self.iget(src_weights=src_weights).wait()

    def update(
        self, *, self_weight: float | None = None, src_weights: Any = None, reset: bool = False
    ) -> Any:
        r"""Average this rank's value with what is in its slots now; it becomes the value.

        .. math:: x_i = W_{ii} x_i + \sum_j W_{ij} s_{ij}

        The sum runs over ascending ranks, this one in its place, as in
        :meth:`Communicator.neighbor_allreduce`. Nothing is sent, and nobody is waited for.

        Args:
            self_weight: Weight of this rank's value; default: of the window's topology.
            src_weights: ``{source: weight}`` for some or all in-neighbours, given together with
                ``self_weight``.
            reset: Set the slots that were used to zero.

        Returns:
            The new value, like what the window was made of; a copy.

        Raises:
            ArgumentError: A source is no in-neighbour, or one of the weights is missing.
            WindowError: The window was freed, or carries push-sum weights: use :meth:`collect`.
        """
        if self.push_sum:
            raise WindowError(
                f"window {self.name!r} carries push-sum weights; take in what has come with collect"
            )
        sources, weights, place = self._terms(self_weight, src_weights)
        return self._mix(sources, weights, place, reset)

    def collect(self) -> Any:
        r"""Add to this rank's value what is in its slots, and empty them.

        .. math:: x_i = x_i + \sum_j s_{ij}, \qquad s_{ij} = 0

        With ``push_sum=True`` the weight likewise. What arrives meanwhile is kept for the next
        time: nothing is lost and nothing counts twice.

        Returns:
            The new value (see :attr:`debiased` for value over weight); a copy.

        Raises:
            WindowError: The window was freed.
        """
        sources = tuple(self._store.slots)
        place = sum(source < self._comm.rank for source in sources)
        return self._mix(sources, (1.0,) * (len(sources) + 1), place, reset=True)

    def _mix(
        self, sources: Sequence[int], weights: Sequence[float], place: int | None, reset: bool
    ) -> Any:
        self._check_open()
        store = self._store
        store.settle()
        slots = [store.slots[source] for source in sources]
        terms: list[Cell] = list(slots)
        if place is not None:
            terms.insert(place, store.own)
        held = terms if place is not None else [*terms, store.own]
        with _cells.exclusive(held):
            mixed = tuple(
                average(weights, [cell.buffers[k] for cell in terms], dtype)
                for k, dtype in enumerate(store.layout.dtypes)
            )
            _cells.write(store.own, mixed, 1.0, store.layout.dtypes)
            store.own.version += 1
            if self.push_sum:
                store.own.weight = sum(cell.weight for cell in terms)
            self._note_use(sources)
            if reset:
                for cell in slots:
                    _cells.emptied(cell)
        if reset and self.push_sum:
            store.moved()
        return unpack(mixed, store.layout)

    def _note_use(self, sources: Sequence[int]) -> None:
        now = self._comm.now()
        cells = self._store.slots
        self._store.used({source: max(0.0, now - cells[source].time) for source in sources})
        for source, cell in cells.items():
            fresh = cell.version > self._seen[source]
            self._stale[source] = 1 if fresh else self._stale[source] + 1
            self._seen[source] = cell.version

    # -- this rank's own -----------------------------------------------------------------------

    def set(self, x: Any) -> None:
        """Replace this rank's own value; nothing is sent.

        Raises:
            ContractError: ``x`` has another structure, shape or dtype than the window.
            WindowError: The window was freed.
        """
        self._check_open()
        given = self._buffers(x)
        self._store.settle()
        with self._store.own.exclusive():
            self._store.injected(self._store.own.buffers, given)
            _cells.write(self._store.own, given, 1.0, self._store.layout.dtypes)
            self._store.own.version += 1

    @property
    def value(self) -> Any:
        """This rank's own value now; a copy."""
        self._check_open()
        self._store.settle()
        return unpack(_cells.look(self._store.own).buffers, self._store.layout)

    @property
    def weight(self) -> float:
        """The weight that push-sum carries beside the value; 1 without ``push_sum``."""
        return self._store.own.weight if self.push_sum else 1.0

    @property
    def debiased(self) -> Any:
        """Value over weight: this rank's estimate of the average in push-sum."""
        self._check_open()
        store, layout = self._store, self._store.layout
        if not self.push_sum:
            return self.value
        factor = 1.0 / store.own.weight
        scaled = tuple(
            average((factor,), (buffer,), dtype)
            for buffer, dtype in zip(store.own.buffers, layout.dtypes, strict=True)
        )
        return unpack(scaled, layout)

    def slot(self, source: int) -> Any:
        """Return what is in the slot of an in-neighbour now; a copy.

        Raises:
            ArgumentError: ``source`` is no in-neighbour.
        """
        return unpack(_cells.look(self._slot(source)).buffers, self._store.layout)

    def version(self, source: int) -> int:
        """Return how often the slot of an in-neighbour was written since the window was made.

        Raises:
            ArgumentError: ``source`` is no in-neighbour.
        """
        return int(self._slot(source).version)

    def staleness(self, source: int) -> int:
        """Return how many updates have used what is in an in-neighbour's slot already.

        0 means that it was written since the last :meth:`update` or :meth:`collect`; a neighbour
        that writes once per update of this rank's is never staler than that.

        Raises:
            ArgumentError: ``source`` is no in-neighbour.
        """
        fresh = self._slot(source).version > self._seen[source]
        return 0 if fresh else self._stale[source]

    def age(self, source: int) -> float:
        """Return the seconds since what is in an in-neighbour's slot was sent.

        On several hosts it is as right as their clocks agree.

        Raises:
            ArgumentError: ``source`` is no in-neighbour.
        """
        return max(0.0, float(self._comm.now()) - self._slot(source).time)
