"""Mistakes with windows that a backend could make, planted in ours."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from dectool.communicator import _cells, _one_sided
from dectool.communicator._cells import Cell
from dectool.communicator._window import Window
from dectool.communicator._window_base import WindowBase
from dectool.sim import _window as sim_window
from dectool.sim._window import SimStore

Mutation = Callable[[pytest.MonkeyPatch], None]


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> Mutation:
    """Return the mutation that puts ``make(original)`` in the place of an attribute."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(owner, name, make(getattr(owner, name)), raising=False)

    return plant


def without_factor(original: Any) -> Any:
    return lambda own, slot, remote, buffers, dtypes: original(
        own, slot, remote._replace(factor=1.0), buffers, dtypes
    )


def always_put(original: Any) -> Any:
    return lambda own, slot, remote, buffers, dtypes: original(
        own, slot, remote._replace(kind="put"), buffers, dtypes
    )


def into_the_slot(original: Any) -> Any:
    return lambda own, slot, remote, buffers, dtypes: original(slot, slot, remote, buffers, dtypes)


def kept_whole(original: Any) -> Any:
    return lambda self, x, kept: original(self, x, 1.0)


def zero_at_first(original: Any) -> Any:
    return lambda self: original(self._replace(zero=True))


def nothing(original: Any) -> Any:
    return lambda *args, **options: None


def stale_value(original: Any) -> Any:
    def look(cell: Cell) -> Any:
        content = original(cell)
        return content._replace(buffers=tuple(0 * b for b in content.buffers))

    return look


def never_stale(original: Any) -> Any:
    return lambda self, source: 0


def of_the_pickle(original: Any) -> Any:
    return lambda what: original(pickle.dumps(what))


def weightless(original: Any) -> Any:
    return lambda own, slot, remote, buffers, dtypes: original(
        own, slot, remote._replace(weight=0.5 * remote.weight), buffers, dtypes
    )


def uncompressed_bytes(original: Any) -> Any:
    return lambda self, parcel, shares, extra: original(self, parcel, shares, extra + 1)


def one_name(original: Any) -> Any:
    def open_store(self: Any, opening: Any) -> Any:
        return original(self, opening._replace(name="the only one"))

    return open_store


def default_topology(original: Any) -> Any:
    def window(self: Any, x: Any, name: str, topology: Any = None, **options: Any) -> Any:
        return original(self, x, name, None, **options)

    return window


def reads_without_reset(original: Any) -> Any:
    return lambda self, sources, weights, place, reset: original(
        self, sources, weights, place, False
    )


def any_neighbor(original: Any) -> Any:
    def chosen(self: Any, weights: Any, default: float, known: Any, *names: str) -> Any:
        return original(self, weights, default, range(self._comm.size), *names)

    return chosen


def granted_at_once(original: Any) -> Any:
    return lambda self, owner: None


def fence_on_error(original: Any) -> Any:
    return lambda self, kind, error, traceback: original(self, None, None, None)


WINDOW_MUTATIONS: dict[str, list[Mutation]] = {
    "puts_are_seen_by_updates": [
        replace(WindowBase, "_terms", lambda o: lambda self, a, b: ((), (1.0,), 0)),
        replace(Window, "fence", nothing),
    ],
    "weights_scale_what_is_put_and_kept": [
        replace(sim_window, "apply", without_factor),
        replace(Window, "_offer", kept_whole),
    ],
    "slots_start_from_ones_own_value": [replace(_cells.Opening, "first_slot", zero_at_first)],
    "accumulates_add_up_and_are_collected_once": [
        replace(sim_window, "apply", always_put),
        replace(_cells, "emptied", nothing),
        replace(Window, "_mix", reads_without_reset),
    ],
    "gets_read_the_neighbours_values": [replace(sim_window, "look", stale_value)],
    "versions_and_staleness_count": [replace(Window, "staleness", never_stale)],
    "push_sum_keeps_mass_and_finds_the_average": [replace(sim_window, "apply", weightless)],
    "containers_and_compressed_values_are_written_whole": [
        replace(SimStore, "send", uncompressed_bytes),
        replace(_one_sided.OneSidedOperations, "_decoder", lambda o: _first_only(o)),
    ],
    "keys_agree_that_are_equal": [replace(_one_sided, "digest", of_the_pickle)],
    "additions_change_the_values_themselves": [replace(sim_window, "apply", into_the_slot)],
    "many_windows_are_open_at_once": [
        replace(Window, "free", lambda o: lambda self: self._store.close()),
    ],
    "a_window_keeps_its_topology": [
        replace(_one_sided.OneSidedOperations, "window", default_topology)
    ],
    "one_rank_at_a_time_holds_a_mutex": [replace(SimStore, "acquire", granted_at_once)],
    "wrong_windows_are_refused": [
        replace(WindowBase, "_chosen", any_neighbor),
        replace(WindowBase, "_check_open", nothing),
        replace(WindowBase, "_buffers", lambda o: lambda self, x: self._comm._pack(x)[0]),
    ],
    "an_error_frees_windows": [replace(Window, "__exit__", fence_on_error)],
}
"""Mistakes that each check of windows must find when it runs on the simulator."""


def _first_only(original: Any) -> Any:
    def decoder(self: Any, *args: Any) -> Any:
        decode = original(self, *args)
        return lambda parcel: tuple(0.5 * b for b in decode(parcel))

    return decoder
