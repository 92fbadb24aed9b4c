"""Buckets that fit a communicator: its leading axes, and its network."""

from __future__ import annotations

from typing import Any

from dectool.communicator._bucket_size import BUCKET_BYTES
from dectool.communicator._buckets import Buckets
from dectool.communicator._core import CommunicatorCore


class FusedOperations(CommunicatorCore):
    """The part of a communicator that makes buckets."""

    def buckets(
        self,
        arrays: Any,
        bucket_bytes: int | str | None = BUCKET_BYTES,
        *,
        network: Any = None,
        rate: float | None = None,
        order: str = "given",
        align: int = 64,
        rows: int = 0,
    ) -> Buckets:
        """Lay arrays out in flat buffers, of which each is one message without a copy.

        Args:
            arrays: An array, or a container of arrays or of :class:`dectool.fusion.Spec`.
            bucket_bytes: Most bytes of a bucket [byte]; ``None``: one for each dtype; "auto":
                what is best for the network, as :func:`dectool.fusion.best_bucket_bytes` says,
                with the largest out-degree of ``comm.topology`` as number of messages.
            network: A network model for "auto"; a simulated backend has one.
            rate: How fast the arrays are made [byte/s], for "auto"; default: as fast as sent.
            order: "given", or "reversed" for gradients.
            align: Bytes of which the offset of each array is a multiple.
            rows: 1 for arrays with a row for each rank or neighbour in front.

        Returns:
            What every operation takes in place of an array; see
            :class:`dectool.fusion.Buckets`.

        Raises:
            ArgumentError: "auto" without a network model, or a number or a name is wrong.

        Example:
            >>> import numpy as np, dectool
            >>> def program(comm):
            ...     buckets = comm.buckets(comm.per_rank(lambda rank: [np.ones(2) * rank] * 3))
            ...     requests = [comm.iallreduce(bucket) for bucket in buckets]
            ...     return [request.wait().views for request in requests], comm.bytes_sent
            >>> dectool.run(program, n=2, backend="sim").values[0]
            ([(array([0.5, 0.5]), array([0.5, 0.5]), array([0.5, 0.5]))], 144)
        """
        degree = 1
        if self._topology is not None:
            degree = max(1, int(self._topology.out_degrees.max()))
        return Buckets(
            arrays,
            bucket_bytes,
            network=self._network_model() if network is None else network,
            messages=degree,
            ranks=self.size,
            rate=rate,
            order=order,
            align=align,
            lead=len(self._lead_shape) + rows,
        )

    def _network_model(self) -> Any:
        """Return the model by which messages are timed; real backends have none."""
        return None
