"""Python objects between ranks, by the engine, so that waiting for them has its patience."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from dectool.backends.mpi._engine import Engine
from dectool.communicator import Channel, Parcel


def post_object(engine: Engine, content: Any, dest: int, channel: Channel) -> None:
    """Send an object; it is not counted as a message of the program."""
    data = np.frombuffer(pickle.dumps(content, pickle.HIGHEST_PROTOCOL), np.uint8)
    engine.post(Parcel((data,), None, 0), dest, channel, counted=False)


def receive_objects(engine: Engine, sources: Sequence[int], channel: Channel) -> list[Any]:
    """Receive one object from each of the sources."""
    receipts = [engine.expect(source, channel) for source in sources]
    return [pickle.loads(parcel.buffers[0]) for parcel in engine.wait(receipts)]
