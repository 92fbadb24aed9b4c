"""Wire formats byte by byte, sizes without data, and payloads that are cut or foreign."""

import numpy as np
import pytest

from dectool import compression
from dectool.compression import Payload
from dectool.errors import ArgumentTypeError, ContractError, UnsupportedOperation

torch = pytest.importorskip("torch")

FIXED = [
    "identity", "cast:float16", "cast:float8_e5m2", "minmax8", "minmax8:5", "qsgd:4",
    "qsgd:7,block=6", "qsgd:300", "natural", "sign", "topk:0.1", "topk:3", "randomk:0.3",
    "lowrank:2", "moniqua:8", "moniqua:8,bits=5", "topk:0.3|qsgd:4", "topk:9|topk:2|sign",
    "randomk:0.3|natural",
]  # fmt: skip
VARIABLE = [
    "threshold:0.7",
    "qsgd:1,elias=true",
    "threshold:0.7|minmax8:3",
    "topk:9|qsgd:1,elias=true",
]


def rng():
    return np.random.default_rng(0)


def decompress(c, payload, x):
    return c.decompress(payload, x) if c.needs_reference else c.decompress(payload)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("text", FIXED)
def test_the_declared_size_is_the_size(text, dtype):
    c = compression.get(text)
    assert c.fixed_size
    for count in (0, 1, 2, 7, 8, 9, 100, 255, 256, 257, 1000):
        x = np.random.default_rng(count).normal(size=count).astype(dtype)
        payload = c.compress(x, rng())
        assert c.wire_bytes(count, dtype) == payload.nbytes == len(payload.to_bytes())


@pytest.mark.parametrize("text", FIXED)
def test_a_meta_tensor_has_a_size(text):
    c = compression.get(text)
    x = torch.empty(4, 50, device="meta", dtype=torch.bfloat16)
    payload = c.compress(x, rng())
    assert payload.nbytes == 4 * c.wire_bytes(50, "bfloat16")
    assert payload.row(2).nbytes == c.wire_bytes(50, "bfloat16")
    back = decompress(c, payload, x)
    assert (back.device.type, back.shape, back.dtype) == ("meta", x.shape, x.dtype)
    with pytest.raises(ArgumentTypeError, match="no bytes"):
        payload.to_bytes()


@pytest.mark.parametrize("text", VARIABLE)
def test_a_size_that_depends_on_the_data_is_not_declared(text):
    c = compression.get(text)
    assert not c.fixed_size
    with pytest.raises(UnsupportedOperation, match="depends on the numbers"):
        c.wire_bytes(10)
    with pytest.raises(UnsupportedOperation):
        c.compress(torch.empty(5, device="meta"), rng())


@pytest.mark.parametrize("text", [*FIXED, *VARIABLE])
@pytest.mark.parametrize("count", [0, 1, 9, 100, 255, 256])
def test_bytes_are_read_back(text, count):
    c = compression.get(text)
    x = np.random.default_rng(count).normal(size=count).astype(np.float32)
    payload = c.compress(x, rng())
    for form in (bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)):
        read = Payload.from_bytes(form(payload.to_bytes()), c, like=np.zeros_like(x))
        assert decompress(c, read, x).tobytes() == decompress(c, payload, x).tobytes()


@pytest.mark.parametrize("text", [*FIXED, *VARIABLE])
def test_cut_and_long_payloads_are_refused(text):
    c = compression.get(text)
    x = np.random.default_rng(0).normal(size=100).astype(np.float32)
    data = c.compress(x, rng()).to_bytes()
    for wrong in (data[:-1], data + b"\x00", data[: len(data) // 2], b""):
        with pytest.raises(ContractError, match="cut, or another compressor's"):
            Payload.from_bytes(wrong, c, like=x)


FOREIGN = {
    "minmax8": (b"\x00\x00\x80\x3f\x00\x00\x00\x00" + bytes(56), "minimum 1.0 and maximum 0.0"),
    "qsgd:4": (b"\x00\x00\x80\xbf" + bytes(2), "a norm is -1.0"),
    "qsgd:4,norm=max": (bytes(4) + b"\xff\x00", "a code is above 8"),
    "qsgd:2": (bytes(4) + b"\x00\x10", "behind the last code"),
    "qsgd:2,elias=true": (bytes(4) + b"\x01", "stream of bits breaks off"),
    "qsgd:2,norm=max,elias=true": (bytes(4) + b"\x00\x00", "goes on behind its end"),
    "qsgd:3,elias=true": (bytes(3), "fewer than the 4 of the norms"),
    "qsgd:4,elias=true": (bytes(4), "is missing"),
    # distance 4 (101000), sign 0, level 1 (0)
    "qsgd:1,elias=true": (bytes(4) + b"\x01\xa0", "beyond the 3"),
    # distance 1 (0), sign 0, level 2 (100)
    "qsgd:1,norm=max,elias=true": (bytes(4) + b"\x01\x20", "a level is above 1"),
    "sign": (b"\x00\x00\x80\xbf\x00", "the scale is -1.0"),
    "topk:2": (b"\x01\x01" + bytes(8), "do not ascend"),
    "topk:1": (b"\x03" + bytes(4), "place 3 is beyond the 3 numbers"),
    "threshold:1": (b"\x02\x02\x01" + bytes(8), "do not ascend"),
    "threshold:2": (b"\x02\x00\x01" + bytes(7), "10 bytes are not what 2 places"),
    "threshold:3": (b"\x04\x00\x01\x02\x03" + bytes(16), "21 bytes are not what 4 places"),
    "threshold:1|cast:float16": (b"\x02\x00\x01" + bytes(3), "6 bytes are not what 2 places"),
    "threshold:1|sign": (b"\x02\x00", "2 bytes are fewer than 2 places"),
    "topk:1|sign": (b"\x00\x00\x00\x80\xbf\x00", "the scale is -1.0"),
    "natural": (b"\x00\x00\x00\x08", "behind the last number"),
    "moniqua:1,bits=2": (b"\x40", "behind the last code"),
}


@pytest.mark.parametrize("text", FOREIGN)
def test_foreign_bytes_are_refused(text):
    data, message = FOREIGN[text]
    c = compression.get(text)
    with pytest.raises(ContractError, match=message):
        Payload.from_bytes(data, c, like=np.zeros(3, np.float32))


def test_another_compressors_payload_is_refused():
    payload = compression.TopK(2).compress(np.ones(5))
    with pytest.raises(ContractError, match="made by topk:2, and topk:3 cannot read it"):
        compression.TopK(3).decompress(payload)


def test_rows_are_read_back_where_their_size_is_known():
    c, x = compression.TopK(2), np.random.default_rng(0).normal(size=(3, 5))
    read = Payload.from_bytes(c.compress(x).to_bytes(), c, like=x)
    assert (c.decompress(read) == c.decompress(c.compress(x))).all()
    with pytest.raises(ContractError, match="one row at a time"):
        Payload.from_bytes(b"", compression.Threshold(1.0), like=x)
    with pytest.raises(ContractError, match="got 5 bytes for 3 rows"):
        Payload.from_bytes(bytes(5), c, like=x)


def hexed(text, numbers, dtype=np.float32):
    return compression.get(text).compress(np.array(numbers, dtype), rng()).to_bytes().hex(" ", 1)


def test_wire_formats():
    assert hexed("identity", [1.0, -2.0]) == "00 00 80 3f 00 00 00 c0"
    assert hexed("cast:float16", [1.0, -2.0]) == "00 3c 00 c0"
    assert hexed("cast:bfloat16", [1.0, -2.0]) == "80 3f 00 c0"
    assert hexed("cast:float8_e4m3fn", [1.0, -2.0]) == "38 c0"
    assert hexed("cast:float8_e5m2", [1.0, -2.0]) == "3c c0"
    # mean 1; negative are the second and the ninth
    assert hexed("sign", [1, -1, 1, 1, 1, 1, 1, 1, -1]) == "00 00 80 3f 02 01"
    assert hexed("sign", [0.0, -0.0, 3.0, -1.0]) == "00 00 80 3f 08"  # sign(0) is 1
    assert hexed("sign", [-1.0], np.float64) == "00 00 00 00 00 00 f0 3f 01"
    # places 1 and 2, then the values
    assert hexed("topk:2", [0.0, 1.0, -2.0]) == "01 02 00 00 80 3f 00 00 00 c0"
    assert hexed("topk:1", [0.0] * 256 + [1.0]) == "00 01 00 00 80 3f"
    assert hexed("threshold:2", [0.0, 1.0, -2.0]) == "01 02 00 00 00 c0"
    assert hexed("threshold:9", [0.0] * 256) == "00 00"
    assert hexed("topk:2", [0.0, 1.0, -2.0], np.float16) == "01 02 00 3c 00 c0"
    # norm 1, then s + level in 2 bits: 1 + 1, 1 + 0, 1 - 1, 1
    assert hexed("qsgd:1,norm=max", [1, 0, -1, 0]) == "00 00 80 3f 46"
    # without a norm every code is s
    assert hexed("qsgd:1", [0, 0, -0.0, 0]) == "00 00 00 00 55"
    assert hexed("qsgd:1", [1, np.nan, -3, 2]) == "00 00 c0 7f 55"
    assert hexed("qsgd:1,norm=max", [1, -np.inf, -3, 2]) == "00 00 c0 7f 55"
    # two, with distances 1 and 2, signs 0 and 1, levels 1 and 1: 0 0 0, 100 1 0, zeros
    assert hexed("qsgd:1,norm=max,elias=true", [1, 0, -1, 0]) == "00 00 80 3f 02 12"
    # exponents 127 and 128, then the signs
    assert hexed("natural", [1.0, -2.0]) == "7f 80 02"
    assert hexed("natural", [1.0, -2.0], np.float64) == "ff 00 c3"
    # B = 2 / (1 - 2^-2), 4 codes: round(4 x / B) mod 4
    assert hexed("moniqua:1,bits=2", [0.0, 0.7, 2.0, 2.7]) == hexed(
        "moniqua:1,bits=2", [8 / 3, 0.7 - 8 / 3, 2.0 + 80 / 3, 2.7]
    )
    assert hexed("moniqua:1,bits=2", [0.0, 0.7, 1.4, 2.0]) == "e4"
    # P = 1 or -1, then Q = (2, 4) with the sign of P
    one, two, four = (np.array([v], "<f4").tobytes().hex(" ") for v in (1, 2, 4))
    m_one, m_two, m_four = (np.array([v], "<f4").tobytes().hex(" ") for v in (-1, -2, -4))
    assert hexed("lowrank:1,shape=1x2", [2.0, 4.0]) in (
        f"{one} {two} {four}",
        f"{m_one} {m_two} {m_four}",
    )
    # the seed, then the values
    seed = int(rng().integers(0, 2**64, dtype=np.uint64)).to_bytes(8, "little")
    assert hexed("randomk:3", [1.0, 2.0, 3.0]) == (seed + np.array([1, 2, 3], "<f4").tobytes()).hex(
        " ", 1
    )
    # heads of the first, payload of the second
    assert hexed("topk:2|sign", [0.0, 1.0, -3.0]) == "01 02 00 00 00 40 02"


def test_payload_says_what_it_is():
    payload = compression.TopK(2).compress(np.zeros((3, 5), np.float32))
    assert repr(payload) == "Payload(topk:2, 30 bytes for float32[3, 5])"
    assert (payload.count, payload.dtype, payload.lead) == (5, "float32", (3,))


@pytest.mark.parametrize("d", [1, 8, 100, 256, 257, 65536, 1_000_000])
def test_sizes_are_those_of_theory(d):
    """The bits that theory counts: sign d + 32, 8-bit 8 d + its header, top-k k (32 + log2 d)."""
    assert compression.ScaledSign().wire_bytes(d) == 4 + -(-d // 8)
    assert d + 32 <= compression.MinMax8().wire_bytes(d) < d + 64
    k, bits = min(d, 10), max(1, (d - 1).bit_length())
    assert compression.TopK(10).wire_bytes(d) == k * (4 + -(-bits // 8))
    assert compression.RandomK(10).wire_bytes(d) == 8 + 4 * k
    assert compression.QSGD(4).wire_bytes(d) == 4 + -(-d * 4 // 8)
    assert compression.QSGD(1).wire_bytes(d) == 4 + -(-d * 2 // 8)
    assert compression.QSGD(127).wire_bytes(d) == 4 + d
    assert compression.Natural().wire_bytes(d) == d + -(-d // 8)
    assert compression.Cast("float16").wire_bytes(d) == 2 * d
    side = -(-d // (int((d - 1) ** 0.5) + 1)) if d > 1 else 1
    assert compression.LowRank(1).wire_bytes(d) == 4 * (side + int((d - 1) ** 0.5) + 1)
