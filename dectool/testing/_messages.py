"""Checks of messages between single ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool.testing._check import SIZES, check
from dectool.testing._compare import assert_same_bits
from dectool.testing._kinds import averageable, numpy_kind, values, whole
from dectool.testing._runner import Runner, apply

FLOAT64 = numpy_kind("float64")


def _along(comm: Any, x: Any, dest: Any, source: Any) -> Any:
    to, origin = (comm.per_rank(lambda r, p=p: int(p[r])) for p in (dest, source))
    return comm.sendrecv(x, to, origin)


@check()
def sendrecv_follows_a_permutation(runner: Runner) -> None:
    """Every rank sends to one and receives from one, itself allowed."""
    for n in SIZES:
        order = np.random.default_rng(n).permutation(n)
        for dest in (order, (np.arange(n) + 1) % n, np.arange(n)):
            source = np.argsort(dest)
            for kind in [*averageable(), *whole()]:
                xs = values(kind, n, (2, 2), 73)
                got = apply(runner, _along, xs, dest, source)
                for rank in range(n):
                    where = f"sendrecv of {kind.name} on rank {rank} of {n}"
                    assert_same_bits(got[rank], xs[source[rank]], where)


@check("one-sided sendrecv")
def sendrecv_needs_no_partner(runner: Runner) -> None:
    """With -1 for the destination nothing is sent, for the source nothing received."""
    xs = values(FLOAT64, 4, (3,), 79)
    got = apply(runner, _along, xs, [1, 2, 3, -1], [-1, 0, 1, 2])
    assert got[0] is None, "rank 0 received something from nobody"
    for rank in (1, 2, 3):
        assert_same_bits(got[rank], xs[rank - 1], f"shift on rank {rank}")


@check("isend", "irecv")
def messages_are_matched_by_source_and_tag(runner: Runner) -> None:
    """Whatever the order in which they were sent or are received."""
    xs = values(FLOAT64, 6, (3,), 83)

    def program(comm: Any) -> Any:
        if comm.rank < 2:
            for tag in (5, 0, 7):
                comm.isend(xs[3 * comm.rank + (5, 0, 7).index(tag)], dest=2, tag=tag).wait()
            return None
        late = comm.irecv(1, tag=7)
        got = {(source, tag): comm.recv(source, tag) for tag in (0, 5) for source in (1, 0)}
        got[0, 7] = comm.irecv(source=0, tag=7).wait()
        got[1, 7] = late.result
        return got

    got = runner(program, 3)[2]
    for (source, tag), value in got.items():
        expected = xs[3 * source + (5, 0, 7).index(tag)]
        assert_same_bits(value, expected, f"tag {tag} from rank {source}")


@check("isend", "irecv")
def messages_of_one_tag_keep_their_order(runner: Runner) -> None:
    """Also when big ones are followed by small ones, and to oneself."""
    sizes = (20_000, 1, 300, 0, 5)

    def program(comm: Any) -> Any:
        peer = comm.size - 1 - comm.rank
        for number, size in enumerate(sizes):
            comm.send(np.full(size, 10.0 * comm.rank + number), dest=peer)
        requests = [comm.irecv(peer) for _ in sizes]
        return [request.wait() for request in reversed(requests)][::-1]

    for n in (1, 2, 3):
        for rank, value in enumerate(runner(program, n)):
            expected = [np.full(size, 10.0 * (n - 1 - rank) + k) for k, size in enumerate(sizes)]
            assert_same_bits(value, expected, f"order on rank {rank} of {n}")


@check("isend", "irecv")
def messages_may_hold_anything_of_any_shape(runner: Runner) -> None:
    """The receiver need not know what comes."""
    for kind in [*averageable(), *whole()]:
        (x,) = values(kind, 1, (2, 3), 89)

        def program(comm: Any, x: Any = x) -> Any:
            if comm.rank == 0:
                comm.send({"b": x, "a": [x[0], x[:, 1]]}, dest=1)
                return None
            return comm.recv(source=0)

        got = runner(program, 2)[1]
        assert_same_bits(got, {"b": x, "a": [x[0], x[:, 1]]}, kind.name)


def _exchanged(comm: Any, rank: Any, xs: Any, form: str) -> Any:
    n = comm.size
    sends = {(rank + k) % n: xs[rank][k] for k in range(min(3, n))} if comm.rank >= 0 else {}
    received = getattr(comm, form)(sends, [(rank - k) % n for k in range(min(3, n))], tag=3)
    return received.wait() if form == "iexchange" else received


@check("exchange")
def exchange_sends_to_many_and_receives_from_many(runner: Runner) -> None:
    """A dict by destination goes in, a dict by source comes out, in the order asked for."""
    for n in reversed(SIZES):
        xs = [values(FLOAT64, n, (rank + 1,), 97 + rank) for rank in range(n)]

        for form in ("exchange", "iexchange"):
            got = apply(runner, _exchanged, range(n), xs, form)
            for rank in range(n):
                expected = {(rank - k) % n: xs[(rank - k) % n][k] for k in range(min(3, n))}
                assert_same_bits(got[rank], expected, f"{form} on rank {rank} of {n}")


@check("isend", "irecv")
def sending_does_not_wait_for_the_receiver(runner: Runner) -> None:
    """All may send first and receive then; isend gives no result."""

    def program(comm: Any) -> Any:
        peer = 1 - comm.rank
        assert comm.isend(np.full(1000, float(comm.rank)), peer).wait() is None
        comm.send(np.full(1000, -1.0), peer, tag=1)
        comm.recv(peer, tag=1)
        return float(comm.recv(peer)[0])

    assert list(runner(program, 2)) == [1.0, 0.0]
