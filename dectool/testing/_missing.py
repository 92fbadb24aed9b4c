"""Checks of what is said about lost messages, where none are lost."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool.errors import ArgumentError
from dectool.testing._check import check
from dectool.testing._compare import assert_same_bits
from dectool.testing._kinds import numpy_kind, values
from dectool.testing._portable import random_topology
from dectool.testing._runner import Runner


@check()
def policies_change_nothing_where_nothing_is_lost(runner: Runner) -> None:
    """With any policy, set or passed, neighbour operations give the bits that they give without."""
    graph = random_topology(5, 2)
    xs = values(numpy_kind("float64"), 5, (3,), 0)

    def program(comm: Any) -> Any:
        assert comm.missing == "error"
        assert comm.restarts == 0
        assert comm.gone == ()
        assert list(comm.steps(5, start=2)) == [2, 3, 4]
        assert not list(comm.steps(0))
        x = comm.per_rank(xs.__getitem__)
        peers = comm.rank ^ 1
        peers = np.where(peers < comm.size, peers, -1)
        peer = peers if peers.ndim else int(peers)
        plain = [comm.neighbor_allreduce(x), comm.pair_gossip(x, peer)]
        for policy in ("renormalize", "self", "error"):
            passed = [
                comm.neighbor_allreduce(x, missing=policy),
                comm.pair_gossip(x, peer, missing=policy),
            ]
            comm.missing = policy
            kept = [comm.neighbor_allreduce(x), comm.pair_gossip(x, peer)]
            for mine, other, third in zip(plain, passed, kept, strict=True):
                assert_same_bits(other, mine, f"missing={policy!r}")
                assert_same_bits(third, mine, f"comm.missing = {policy!r}")
        edges = comm.neighbor_allgather(x)
        for fill in ("self", np.zeros_like(edges)):
            assert_same_bits(comm.neighbor_allgather(x, missing=fill), edges, "neighbor_allgather")
        try:
            comm.missing = "drop"
        except ArgumentError:
            pass
        else:
            raise AssertionError("comm.missing = 'drop' was not refused")
        return comm.neighbor_allreduce(x)

    got = runner(program, 5, topology=graph)
    W = graph.to_dense()
    for rank, value in enumerate(got):
        np.testing.assert_allclose(value, sum(W[rank, j] * xs[j] for j in range(5)), atol=1e-12)
