"""Checks of identity, nodes and groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool import topology
from dectool.testing._check import SIZES, check
from dectool.testing._compare import assert_same_bits
from dectool.testing._runner import Runner


@check()
def ranks_know_their_place(runner: Runner) -> None:
    """Ranks are numbered from 0 and lie on nodes in blocks."""
    for n in SIZES:
        for local in (1, 2, 3):
            got = runner(
                lambda comm: {
                    "rank": comm.rank + 0,
                    "local": comm.local_rank + 0,
                    "node": comm.node_rank + 0,
                    "counts": (comm.size, comm.local_size, comm.num_nodes),
                },
                n,
                ranks_per_node=local,
            )
            assert len(got) == n
            for rank, value in enumerate(got):
                found = (int(value["rank"]), int(value["local"]), int(value["node"]))
                assert found == (rank, rank % local, rank // local), f"rank {rank}: {found}"
                assert value["counts"] == (n, local, -(-n // local))


@check("split")
def split_makes_groups_by_color_and_key(runner: Runner) -> None:
    """Members are ordered by key, then rank; without a color a rank has no group."""

    def program(comm: Any) -> Any:
        color = None if comm.rank == 3 else comm.rank % 2
        group = comm.split(color, key=-comm.rank)
        if group is None:
            return None
        x = np.array([float(comm.rank)])
        even = group.split(0, key=comm.rank)
        assert even is not None
        return {
            "place": (group.rank, group.size, even.rank),
            "members": group.allgather(x),
            "sum": group.allreduce(x, "sum", "ring"),
            "ring": group.neighbor_allgather(x, topology.ring(group.size)),
            "shift": group.sendrecv(x, (group.rank + 1) % group.size, group.rank - 1)
            if group.rank
            else group.sendrecv(x, 1, group.size - 1),
        }

    got = runner(program, 8)
    assert got[3] is None
    for color, members in ((0, [6, 4, 2, 0]), (1, [7, 5, 1])):
        values = [np.array([float(rank)]) for rank in members]
        for place, rank in enumerate(members):
            others = [float(m) for p, m in enumerate(members) if _adjacent(p, place, len(members))]
            expected = {
                "place": (place, len(members), sorted(members).index(rank)),
                "members": np.stack(values),
                "sum": np.array([float(sum(members))]),
                "ring": np.array(others)[:, None],
                "shift": values[place - 1],
            }
            value = got[rank]
            assert value.pop("place") == expected.pop("place"), f"color {color}, rank {rank}"
            assert_same_bits(value, expected, f"color {color}, rank {rank}")


def _adjacent(one: int, other: int, size: int) -> bool:
    return (one - other) % size in (1, size - 1)


@check("split")
def groups_do_not_meet_each_others_messages(runner: Runner) -> None:
    """Messages of one tag on several communicators of the same ranks stay apart."""

    def program(comm: Any) -> Any:
        first, second = comm.split(0), comm.split(0)
        peer = 1 - comm.rank
        for number, group in enumerate((comm, first, second)):
            group.isend(np.array([float(number)]), peer)
        return [float(group.recv(peer)[0]) for group in (second, first, comm)]

    assert list(runner(program, 2)) == [[2.0, 1.0, 0.0]] * 2


@check("node", "peers_across_nodes")
def node_and_peers_are_rows_and_columns(runner: Runner) -> None:
    """``node`` holds the ranks of this node, ``peers_across_nodes`` one rank of each node."""
    for n, local in ((1, 1), (4, 2), (5, 2), (8, 4), (3, 8)):
        got = runner(
            lambda comm: {
                "node": comm.node.allgather(np.array(comm.rank)),
                "peers": comm.peers_across_nodes.allgather(np.array(comm.rank)),
                "place": (comm.node.rank, comm.peers_across_nodes.rank),
            },
            n,
            ranks_per_node=local,
        )
        for rank, value in enumerate(got):
            node = [r for r in range(n) if r // local == rank // local]
            peers = [r for r in range(n) if r % local == rank % local]
            assert value["node"].tolist() == node, f"node of rank {rank} of {n}"
            assert value["peers"].tolist() == peers, f"peers of rank {rank} of {n}"
            assert value["place"] == (node.index(rank), peers.index(rank))
