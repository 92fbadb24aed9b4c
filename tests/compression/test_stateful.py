"""Error feedback, differences, EF21 and the warm start: memories that the caller holds."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from dectool import compression
from dectool.communicator import generator
from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.sim._random import StackedGenerator

torch = pytest.importorskip("torch")

WRAPPED = [
    "ef:topk:2", "ef:sign", "ef:qsgd:2", "ef:randomk:0.3", "ef:warm:lowrank:1", "ef21:topk:2",
    "ef21:minmax8", "difference:qsgd:8", "difference:[rate=0.25]:qsgd:2",
    "difference:threshold:0.5", "warm:lowrank:2", "ef21:warm:lowrank:1", "ef:topk:4|qsgd:2",
]  # fmt: skip


def steps(c, xs, rng):
    """Send each x, and return what is received, with the last memory of sender and receiver."""
    here, there = c.init(xs[0]), c.init_receiver(xs[0])
    received = []
    for x in xs:
        payload, here = c.compress(x, rng, here)
        read = compression.Payload.from_bytes(payload.to_bytes(), c.wire, like=x)
        value, there = c.decompress(read, there)
        received.append(value)
    return received, here, there


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("text", WRAPPED)
def test_all_ranks_together_do_what_each_does_alone(text, kind):
    c = compression.get(text)
    xs = np.random.default_rng(0).normal(size=(5, 3, 12)).astype(kind)
    here, there = c.init(xs[0]), c.init_receiver(xs[0])
    stacked = StackedGenerator(3, 3, "c")
    together = []
    for x in xs:
        payload, here = c.compress(x, stacked, here)
        value, there = c.decompress(payload, there)
        together.append(value)
    for rank in range(3):
        received, alone, _ = steps(c, xs[:, rank], generator(3, rank, "c"))
        assert np.stack(received).tobytes() == np.stack(together)[:, rank].tobytes()
        for name, array in alone.items():
            assert here[name][rank].tobytes() == array.tobytes()


@pytest.mark.parametrize("text", WRAPPED)
def test_a_memory_is_a_flat_dict_of_arrays_and_is_not_changed(text):
    c = compression.get(text)
    x = np.random.default_rng(0).normal(size=(2, 12)).astype(np.float32)
    memory = c.init(x)
    before = {name: array.copy() for name, array in memory.items()}
    for _ in range(3):
        _, after = c.compress(x, np.random.default_rng(0), memory)
        assert after.keys() == memory.keys()
        for name, array in memory.items():
            assert isinstance(array, np.ndarray)
            assert (array.dtype, len(array)) == (np.float32, 2)
            assert (after[name].shape, after[name].dtype) == (array.shape, array.dtype)
            assert array.tobytes() == before[name].tobytes()


@pytest.mark.parametrize("text", WRAPPED)
def test_a_run_goes_on_from_saved_memories(text, tmp_path):
    c = compression.get(text)
    xs = np.random.default_rng(0).normal(size=(8, 12))

    def run(memory, k):
        payload, memory = c.compress(xs[k], generator(0, 0, "c", k), memory)
        return payload.to_bytes(), memory

    memory, sent = c.init(xs[0]), []
    for k in range(8):
        if k == 4:
            np.savez(tmp_path / "memory.npz", **memory)
        data, memory = run(memory, k)
        sent.append(data)
    with np.load(tmp_path / "memory.npz") as saved:
        memory = dict(saved)
    for k in range(4, 8):
        data, memory = run(memory, k)
        assert data == sent[k]


@pytest.mark.parametrize("text", WRAPPED)
def test_torch_tensors_stay_tensors(text):
    c = compression.get(text)
    xs = np.random.default_rng(0).normal(size=(4, 12)).astype(np.float32)
    want, _, _ = steps(c, xs, np.random.default_rng(0))
    got, memory, _ = steps(c, [torch.tensor(x) for x in xs], np.random.default_rng(0))
    for a, b in zip(want, got, strict=True):
        assert isinstance(b, torch.Tensor)
        assert b.numpy().tobytes() == a.tobytes()
    assert all(isinstance(array, torch.Tensor) for array in memory.values())


@pytest.mark.parametrize("text", [t for t in WRAPPED if "threshold" not in t])
def test_meta_tensors_have_sizes(text):
    c = compression.get(text)
    x = torch.empty(30, device="meta")
    payload, memory = c.compress(x, None, c.init(x))
    assert payload.nbytes == c.wire_bytes(30) == c.wire.wire_bytes(30)
    value, _ = c.decompress(payload, c.init_receiver(x))
    assert value.device.type == "meta"
    assert all(array.device.type == "meta" for array in memory.values())


@given(
    arrays(np.float64, (6, 5), elements=st.floats(-100, 100)),
    st.sampled_from(["topk:1", "sign", "minmax8", "threshold:3", "topk:2|sign"]),
)
def test_error_feedback_loses_nothing(xs, inner):
    """What was received and the error that is left add up to what was to be sent."""
    c = compression.ErrorFeedback(compression.get(inner))
    received, memory, _ = steps(c, list(xs), None)
    np.testing.assert_allclose(sum(received) + memory["error"], xs.sum(axis=0), atol=1e-9)


def test_error_feedback_of_identity_has_no_error():
    c = compression.ErrorFeedback(compression.Identity())
    _, memory, _ = steps(c, list(np.random.default_rng(0).normal(size=(3, 5))), None)
    assert not memory["error"].any()


@pytest.mark.parametrize("inner", ["topk:1", "sign", "minmax8", "qsgd:8", "lowrank:2"])
def test_differences_vanish_for_a_constant(inner):
    x = np.random.default_rng(0).normal(size=16)
    for c in (compression.EF21(compression.get(inner)), compression.get(f"difference:{inner}")):
        received, here, there = steps(c, [x] * 100, np.random.default_rng(1))
        assert np.abs(received[-1] - x).max() < 1e-6
        assert here["replica"].tobytes() == there["replica"].tobytes()


@given(arrays(np.float64, 8, elements=st.floats(-100, 100)))
def test_ef21_contracts_as_its_compressor_does(x):
    c = compression.EF21(compression.TopK(2))
    received, _, _ = steps(c, [x] * 10, None)
    errors = [np.sum((x - r) ** 2) for r in received]
    for last, error in zip([np.sum(x**2), *errors], errors, strict=False):
        assert error <= (1 - 2 / 8) * last + 1e-9


def test_sender_and_receiver_move_their_replicas_alike():
    c = compression.Difference(compression.QSGD(2), rate=0.25)
    xs = list(np.random.default_rng(0).normal(size=(20, 9)).astype(np.float32))
    received, here, there = steps(c, xs, np.random.default_rng(0))
    assert here["replica"].tobytes() == there["replica"].tobytes()
    assert received[-1].tobytes() != there["replica"].tobytes()


def test_the_warm_start_finds_the_best_approximation():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 7)) @ np.diag([5.0, 3, 1, 0.5, 0.3, 0.2, 0.1])
    c = compression.WarmStart(compression.LowRank(2, shape=(9, 7)))
    received, _, _ = steps(c, [x.ravel()] * 60, rng)
    U, s, V = np.linalg.svd(x)
    best = U[:, :2] * s[:2] @ V[:2]
    np.testing.assert_allclose(received[-1].reshape(9, 7), best, atol=1e-6)
    cold = compression.LowRank(2, shape=(9, 7))
    missed = np.linalg.norm(cold.decompress(cold.compress(x.ravel(), rng)).reshape(9, 7) - x)
    assert missed > np.linalg.norm(best - x) * 1.01


def test_the_warm_start_recovers_from_zero_and_nan():
    c = compression.WarmStart(compression.LowRank(1, shape=(4, 4)))
    x = np.outer([1.0, 2, 3, 4], [1.0, 0, -1, 2]).ravel()
    received, _, _ = steps(c, [x, 0 * x, x, np.nan * x, x], np.random.default_rng(0))
    np.testing.assert_allclose(received[2], x, atol=1e-12)
    assert np.isnan(received[3]).all()
    np.testing.assert_allclose(received[4], x, atol=1e-12)


def test_a_tensor_can_be_one_matrix():
    c = compression.ErrorFeedback(compression.WarmStart(compression.LowRank(1, shape=(3, 4))))
    x = np.random.default_rng(0).normal(size=(3, 4))
    memory = c.init(x, lead=0)
    assert {name: array.shape for name, array in memory.items()} == {"error": (3, 4), "right": (4,)}
    payload, memory = c.compress(x, np.random.default_rng(0), memory, lead=0)
    assert payload.nbytes == 7 * 8
    value, _ = c.decompress(payload, {})
    np.testing.assert_allclose(value + memory["error"], x, atol=1e-12)
    assert np.linalg.matrix_rank(value) == 1


def test_what_cannot_be_wrapped_is_refused():
    with pytest.raises(ArgumentTypeError, match="3 is no compressor"):
        compression.ErrorFeedback(3)
    with pytest.raises(ArgumentTypeError, match="needs a near vector"):
        compression.EF21(compression.Moniqua(1.0))
    with pytest.raises(ArgumentTypeError, match="already makes up for its errors"):
        compression.ErrorFeedback(compression.EF21(compression.TopK(1)))
    with pytest.raises(ArgumentTypeError, match=r"give compression\.LowRank"):
        compression.WarmStart(compression.TopK(1))
    for rate in (0.0, 1.5, float("nan")):
        with pytest.raises(ArgumentError, match="rate"):
            compression.Difference(compression.TopK(1), rate=rate)
