"""Compression: fewer bytes in place of an array, exactly counted.

A :class:`Compressor` is a frozen dataclass of parameters; ``compress(x, rng)`` gives a
:class:`Payload`, whose bytes are what is sent, and ``decompress(payload)`` the array back.
:func:`get` makes one from a text such as ``"topk:0.01"``.
"""

from dectool.compression._cast import Cast as Cast
from dectool.compression._compose import Compose as Compose
from dectool.compression._compressor import Compressor as Compressor
from dectool.compression._difference import EF21 as EF21, Difference as Difference
from dectool.compression._feedback import ErrorFeedback as ErrorFeedback
from dectool.compression._identity import Identity as Identity
from dectool.compression._lowrank import LowRank as LowRank
from dectool.compression._minmax8 import MinMax8 as MinMax8
from dectool.compression._moniqua import Moniqua as Moniqua
from dectool.compression._natural import Natural as Natural
from dectool.compression._payload import Payload as Payload
from dectool.compression._pertensor import PerTensor as PerTensor
from dectool.compression._qsgd import QSGD as QSGD
from dectool.compression._randomk import RandomK as RandomK
from dectool.compression._registry import COMPRESSORS as COMPRESSORS, get as get
from dectool.compression._sign import ScaledSign as ScaledSign
from dectool.compression._sparsifier import Sparsifier as Sparsifier
from dectool.compression._stateful import (
    Memory as Memory,
    StatefulCompressor as StatefulCompressor,
    Stateless as Stateless,
)
from dectool.compression._topk import Threshold as Threshold, TopK as TopK
from dectool.compression._warm_start import WarmStart as WarmStart

COMPRESSORS.update(
    identity=Identity,
    cast=Cast,
    minmax8=MinMax8,
    qsgd=QSGD,
    natural=Natural,
    sign=ScaledSign,
    topk=TopK,
    randomk=RandomK,
    threshold=Threshold,
    lowrank=LowRank,
    moniqua=Moniqua,
    pertensor=PerTensor,
    ef=ErrorFeedback,
    ef21=EF21,
    difference=Difference,
    warm=WarmStart,
)

__all__ = [
    "COMPRESSORS",
    "EF21",
    "QSGD",
    "Cast",
    "Compose",
    "Compressor",
    "Difference",
    "ErrorFeedback",
    "Identity",
    "LowRank",
    "Memory",
    "MinMax8",
    "Moniqua",
    "Natural",
    "Payload",
    "PerTensor",
    "RandomK",
    "ScaledSign",
    "Sparsifier",
    "StatefulCompressor",
    "Stateless",
    "Threshold",
    "TopK",
    "WarmStart",
    "get",
]
