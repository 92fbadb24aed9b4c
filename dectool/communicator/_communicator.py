"""The Communicator itself: all operations together."""

from __future__ import annotations

from dectool.communicator._fused import FusedOperations
from dectool.communicator._one_sided import OneSidedOperations


class Communicator(OneSidedOperations, FusedOperations):
    """What a rank sees of the others; a program is a plain function of one.

    The blocking calls are those of MPI. Any array goes in (NumPy, PyTorch) and the same kind comes
    out; a list, tuple or dict of arrays travels as one message. Inputs are never modified. Each
    operation has a non-blocking form with an ``i`` in front that returns a :class:`Request`.

    A program is written once and runs on every backend: see :func:`dectool.run`.
    """
