"""A row among others has the bytes and values that it has alone, in every kind of array."""

import ml_dtypes
import numpy as np
import pytest

import dectool
from dectool import compression, topology
from dectool.communicator import generator
from dectool.errors import ArgumentError, ArgumentTypeError, ContractError
from dectool.sim._random import StackedGenerator

torch = pytest.importorskip("torch")

ALL = [
    "identity",
    "cast:float16",
    "cast:bfloat16",
    "cast:float8_e4m3fn",
    "cast:float8_e5m2",
    "minmax8",
    "minmax8:5",
    "qsgd:4",
    "qsgd:7,norm=max,block=6",
    "qsgd:1,elias=true",
    "qsgd:300",
    "natural",
    "sign",
    "topk:0.1",
    "topk:3",
    "randomk:0.3",
    "randomk:2,unbiased=true",
    "threshold:0.7",
    "lowrank:2",
    "moniqua:8",
    "moniqua:8,bits=5,stochastic=true",
    "topk:0.3|qsgd:4",
    "topk:0.3|minmax8",
    "topk:9|topk:2|cast:float16",
    "randomk:0.3|natural",
    "topk:9|qsgd:1,elias=true",
    "threshold:0.7|minmax8:3",
]


def decompress(c, payload, x):
    return c.decompress(payload, x) if c.needs_reference else c.decompress(payload)


def same(a, b):
    assert type(a) is type(b)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("count", [1, 13, 40])
@pytest.mark.parametrize("text", ALL)
def test_all_ranks_together_give_what_each_gives_alone(text, count, kind):
    c = compression.get(text)
    x = (np.random.default_rng(5).normal(size=(4, count)) * [[1], [100], [0.01], [0]]).astype(kind)
    together = c.compress(x, StackedGenerator(7, 4, "c"))
    values = decompress(c, together, x)
    assert values.shape == x.shape
    for rank in range(4):
        alone = c.compress(x[rank], generator(7, rank, "c"))
        assert together.row(rank).to_bytes() == alone.to_bytes()
        assert together.sizes[rank] == alone.nbytes
        same(values[rank], decompress(c, alone, x[rank]))
    assert together.nbytes == together.sizes.sum() == len(together.to_bytes())


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("text", [text for text in ALL if text != "randomk:0.3|natural"])
def test_one_generator_serves_the_rows_in_turn(text, kind):
    """In a | b, a draws for all rows before b does; there the order is another."""
    c = compression.get(text)
    x = np.random.default_rng(5).normal(size=(4, 13)).astype(kind)
    together = c.compress(x, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    for row in range(4):
        assert together.row(row).to_bytes() == c.compress(x[row], rng).to_bytes()


LONG = ["minmax8", "qsgd:4", "qsgd:4,block=1000", "natural", "sign", "topk:0.01", "topk:0.5",
        "randomk:0.01", "threshold:1.5", "moniqua:8", "moniqua:8,bits=5,stochastic=true",
        "cast:bfloat16", "topk:0.9|qsgd:2", "qsgd:100,norm=max"]  # fmt: skip


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("text", LONG)
def test_rows_longer_than_a_tile(text, kind):
    """One generator serves one row after the other; the stacked one all of them at once."""
    c = compression.get(text)
    x = np.random.default_rng(5).normal(size=(3, 2 * 65536 + 4321)).astype(kind)
    together = c.compress(x, StackedGenerator(7, 3, "c"))
    in_turn = c.compress(x, np.random.default_rng(1))
    values = decompress(c, together, x)
    rng = np.random.default_rng(1)
    for rank in range(3):
        alone = c.compress(x[rank], generator(7, rank, "c"))
        assert together.row(rank).to_bytes() == alone.to_bytes()
        same(values[rank], decompress(c, alone, x[rank]))
        assert in_turn.row(rank).to_bytes() == c.compress(x[rank], rng).to_bytes()


def test_drawing_for_many_ranks_does_not_depend_on_the_tiles(monkeypatch):
    c = compression.QSGD(4)
    x = np.random.default_rng(5).normal(size=(3, 1000)).astype(np.float32)
    want = c.compress(x, StackedGenerator(7, 3, "c")).to_bytes()
    monkeypatch.setattr("dectool.compression._draw.TILE", 64)
    monkeypatch.setattr("dectool.compression._draw._TOGETHER", 300)
    assert c.compress(x, StackedGenerator(7, 3, "c")).to_bytes() == want


KINDS = {
    "numpy": lambda x: x,
    "fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "big-endian": lambda x: x.astype(">f4"),
    "torch": torch.tensor,
    "torch with gradient": lambda x: torch.tensor(x, requires_grad=True),
    "torch transposed": lambda x: torch.tensor(x.T.copy()).T,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ALL)
def test_every_kind_of_array_gives_the_same_bytes(text, kind):
    c = compression.get(text)
    x = np.random.default_rng(5).normal(size=(3, 8)).astype(np.float32)
    y = KINDS[kind](x)
    for lead in (None, 0, 1, 2):
        want = c.compress(x, np.random.default_rng(0), lead=lead)
        payload = c.compress(y, np.random.default_rng(0), lead=lead)
        assert payload.to_bytes() == want.to_bytes()
        back = decompress(c, payload, y)
        assert isinstance(back, torch.Tensor if "torch" in kind else np.ndarray)
        assert tuple(back.shape) == (3, 8)
        assert str(back.dtype).removeprefix("torch.") == "float32"
        assert np.asarray(back).tobytes() == decompress(c, want, x).tobytes()


@pytest.mark.parametrize("text", ALL)
def test_half_precision_is_computed_in_float32(text):
    c = compression.get(text)
    x = np.random.default_rng(5).normal(size=33).astype(ml_dtypes.bfloat16)
    wide = c.compress(x.astype(np.float32), np.random.default_rng(0))
    payload = c.compress(x, np.random.default_rng(0))
    tensor = torch.tensor(x.astype(np.float32)).bfloat16()
    same_as_torch = c.compress(tensor, np.random.default_rng(0))
    assert payload.to_bytes() == same_as_torch.to_bytes()
    back = decompress(c, payload, x)
    assert back.dtype == ml_dtypes.bfloat16
    assert decompress(c, same_as_torch, tensor).dtype == torch.bfloat16
    if not text.startswith(("lowrank", "minmax8", "topk:0.3|minmax8")):
        want = decompress(c, wide, x.astype(np.float32)).astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(np.asarray(back, np.float32), np.asarray(want, np.float32))
    assert payload.nbytes <= wide.nbytes


def test_shapes_and_scalars():
    c = compression.MinMax8()
    assert c.compress(np.zeros((2, 3, 5))).data.shape == (6, 64)
    assert c.compress(np.zeros((2, 3, 5)), lead=0).data.shape == (1, 64)
    assert c.compress(np.zeros((2, 3, 5)), lead=1).data.shape == (2, 64)
    assert c.decompress(c.compress(2.5)) == 2.5
    assert type(c.decompress(c.compress(2.5))) is float
    assert isinstance(c.decompress(c.compress(np.float32(2.5))), np.float32)
    assert c.decompress(c.compress(np.array(2.5))).shape == ()
    with pytest.raises(ContractError, match="lead=3"):
        c.compress(np.zeros((2, 3)), lead=3)
    with pytest.raises(ContractError, match="lead=-1"):
        c.compress(np.zeros((2, 3)), lead=-1)


@pytest.mark.parametrize("text", ALL)
def test_inputs_are_neither_changed_nor_shared(text):
    c = compression.get(text)
    x = np.random.default_rng(5).normal(size=20)
    before = x.copy()
    payload = c.compress(x, np.random.default_rng(0))
    data = payload.to_bytes()
    values = decompress(c, payload, x)
    same(x, before)
    x[:] = 7.0
    assert payload.to_bytes() == data
    values[:] = 9.0
    assert payload.to_bytes() == data


def test_what_is_no_array_of_reals_is_refused():
    c = compression.TopK(1)
    for x in (np.arange(3), np.array([True]), torch.arange(3), 3):
        with pytest.raises(ArgumentTypeError, match="cast x first"):
            c.compress(x)
    with pytest.raises(ArgumentTypeError, match=r"x\.real and x\.imag"):
        c.compress(np.array([1j]))
    with pytest.raises(ArgumentTypeError, match="no array"):
        c.compress([1.0, 2.0])


@pytest.mark.parametrize("text", ALL)
def test_a_generator_is_asked_for_where_one_is_needed(text):
    c = compression.get(text)
    if c.uses_rng:
        with pytest.raises(ArgumentError, match=r"pass rng, such as numpy\.random"):
            c.compress(np.ones(12))
    else:
        c.compress(np.ones(12))


def test_a_generator_for_other_ranks_is_refused():
    with pytest.raises(ContractError, match=r"shape \(4, 5\) for 3 rows"):
        compression.QSGD(4).compress(np.ones((3, 5)), StackedGenerator(0, 4, "c"))
    with pytest.raises(ContractError, match="for 3 rows"):
        compression.RandomK(1).compress(np.ones((3, 5)), StackedGenerator(0, 4, "c"))


@pytest.mark.parametrize(
    "text", ["qsgd:4", "topk:3|natural", "randomk:0.3", "lowrank:1", "minmax8"]
)
def test_both_simulated_backends_give_the_same_bits(text):
    """The rank axis of the stacked backend, and one program for each rank, from one text."""
    c = compression.ErrorFeedback(compression.get(text))

    def program(comm):
        phase = 7.0 * np.asarray(comm.rank)[..., None]
        x = np.sin(1.0 + phase + np.arange(20.0)).astype(np.float32)
        memory = c.init(x)
        for _ in range(5):
            payload, memory = c.compress(x, comm.rng("compression"), memory)
            x = comm.neighbor_allreduce(c.decompress(payload, {})[0])
        return x, memory["error"]

    ring = topology.ring(6)
    alone = dectool.run(program, topology=ring, backend="sim").values
    together = dectool.run(program, topology=ring, backend="stacked").values
    for k in range(2):
        same(np.stack([value[k] for value in alone]), np.stack([value[k] for value in together]))
