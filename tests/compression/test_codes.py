"""The parts: packing, Elias codes, selection, norms, Moniqua's remainder."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from dectool import compression, kernels
from dectool.compression import _elias, _lowrank, _norms, _packing, _select
from dectool.errors import ContractError


@pytest.mark.parametrize("bits", range(1, 17))
@pytest.mark.parametrize("count", [1, 7, 8, 9, 65, 65536 + 9])
def test_codes_are_packed_without_gaps(bits, count):
    codes = np.random.default_rng(bits).integers(0, 2**bits, (2, count)).astype(np.uint16)
    packed = _packing.pack(codes, bits)
    assert packed.shape == (2, -(-count * bits // 8))
    assert (_packing.unpack(packed, count, bits) == codes).all()
    if count < 100:
        stream = sum(int(code) << (bits * j) for j, code in enumerate(codes[1]))
        assert packed[1].tobytes() == stream.to_bytes(packed.shape[1], "little")


def omega(n):
    """Return the Elias omega code by its definition."""
    code = "0"
    while n > 1:
        code = f"{n:b}{code}"
        n = len(f"{n:b}") - 1
    return code


def test_omega_codes():
    numbers = np.array([*range(1, 300), 65535, 65536, 2**24, 2**31])
    bits, lengths = _elias.omega(numbers)
    for n, b, length in zip(numbers.tolist(), bits.tolist(), lengths.tolist(), strict=True):
        assert f"{b:0{length}b}" == omega(n)


@given(arrays(np.int32, st.integers(1, 60), elements=st.sampled_from([0, 0, 0, 1, -1, 2, -7, 300])))
def test_elias_streams_are_read_back(values):
    stream = _elias.encode(values)
    assert (_elias.decode(stream, len(values)) == values).all()
    assert _elias.wrong(stream, len(values), 300) == ""
    places = np.flatnonzero(values)
    gaps = np.diff(places, prepend=-1)
    bits = sum(
        len(omega(g)) + 1 + len(omega(abs(v))) for g, v in zip(gaps, values[places], strict=True)
    )
    assert len(stream) == 1 + -(-bits // 8)


def test_elias_coding_is_short_where_few_are_not_zero():
    """With one level and the Euclidean norm about sqrt(d) numbers are not zero."""
    x = np.random.default_rng(0).normal(size=10_000)
    c = compression.QSGD(1, elias=True)
    payload = c.compress(x, np.random.default_rng(0))
    assert payload.nbytes < 300 < compression.QSGD(1).wire_bytes(10_000) / 8
    plain = compression.QSGD(1)
    want = plain.decompress(plain.compress(x, np.random.default_rng(0)))
    assert c.decompress(payload).tobytes() == want.tobytes()


@given(
    arrays(
        np.float32,
        st.integers(1, 50),
        elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, np.inf, -np.inf, np.nan, 1e-40]),
    ),
    st.integers(1, 50),
)
def test_the_largest_are_found_as_a_stable_sort_finds_them(x, k):
    k = min(k, len(x))
    key = np.where(np.isnan(x), np.inf, np.abs(x).astype(np.float64))
    key = key + np.where(np.isnan(x), np.inf, 0)
    order = sorted(range(len(x)), key=lambda j: (not np.isnan(x[j]), -key[j], j))
    assert kernels.largest_places(x[None], k)[0].tolist() == sorted(order[:k])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 70, 1000, 50_000, 199_999, 200_000])
@pytest.mark.parametrize(
    "shape", ["normal", "ties", "sorted", "few", "constant", "periodic", "sampled"]
)
def test_the_largest_of_many(shape, k, kind):
    rng = np.random.default_rng(0)
    x = {
        "normal": lambda: rng.normal(size=200_000),
        "ties": lambda: rng.integers(-3, 4, 200_000).astype(float),
        "sorted": lambda: np.arange(200_000.0),
        "few": lambda: np.where(rng.random(200_000) < 1e-4, 1.0, 0.0),
        "constant": lambda: np.ones(200_000),
        "sampled": lambda: np.where(np.arange(200_000) % 12 == 0, 1.0, rng.random(200_000)),
        "periodic": lambda: np.where(np.arange(200_000) % 12 == 0, 0.0, 1.0),
    }[shape]().astype(kind)
    want = np.sort(np.argsort(-np.abs(x), kind="stable")[:k])
    assert (kernels.largest_places(x[None], k)[0] == want).all()


@pytest.mark.parametrize("count", [1, 2, 256, 257, 65536, 65537, 2**24, 2**24 + 1, 2**33])
def test_places_take_as_few_bytes_as_hold_them(count):
    places = np.unique([0, count // 2, count - 1])[None]
    data = _select.write_places(places, count)
    assert (_select.read_places(data, count) == places).all()
    width = data.shape[1] // places.shape[1]
    assert 256**width >= count
    assert width == 1 or 256 ** (width - 1) < count


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000, 70_000])
def test_norms_are_right_and_do_not_depend_on_other_rows(count, kind):
    x = np.random.default_rng(0).normal(size=(3, count)).astype(kind)
    wide = x.astype(np.longdouble)
    close = 4 * np.finfo(kind).eps
    np.testing.assert_allclose(_norms.mean_abs(x)[:, 0], np.abs(wide).mean(axis=1), rtol=close)
    np.testing.assert_allclose(_norms.norm(x)[:, 0], np.sqrt((wide**2).sum(axis=1)), rtol=close)
    for row in range(3):
        assert _norms.norm(x)[row] == _norms.norm(x[row : row + 1])[0]
        assert _norms.mean_abs(x)[row] == _norms.mean_abs(x[row : row + 1])[0]


def test_the_order_of_sums_is_as_documented():
    x = np.random.default_rng(0).normal(size=2 * 65536 + 100)
    lanes = [0.0] * 64
    for start in (0, 65536):
        tile = [0.0] * 64
        for j in range(65536):
            tile[j % 64] += abs(float(x[start + j]))
        lanes = [a + b for a, b in zip(lanes, tile, strict=True)]
    tile = [0.0] * 64
    for j in range(64):
        tile[j] += abs(float(x[2 * 65536 + j]))
    lanes = [a + b for a, b in zip(lanes, tile, strict=True)]
    for j in range(36):
        lanes[j] += abs(float(x[2 * 65536 + 64 + j]))
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [lanes[j] + lanes[half + j] for j in range(half)]
    assert _norms.mean_abs(x[None])[0, 0] == lanes[0] / len(x)


@given(
    arrays(np.float64, 6, elements=st.floats(-1e6, 1e6)),
    arrays(np.float64, 6, elements=st.floats(-0.999, 0.999)),
    st.integers(2, 16),
    st.booleans(),
    st.floats(1e-3, 1e3),
)
def test_moniqua_recovers_what_is_nearer_than_theta(y, apart, bits, stochastic, theta):
    c = compression.Moniqua(theta, bits, stochastic)
    x = y + theta * apart
    got = c.decompress(c.compress(x, np.random.default_rng(0)), y)
    assert np.abs(got - x).max() <= c.error * (1 + 1e-9) + 1e-8
    assert c.error == pytest.approx(2 * c.rounding * theta / (1 - 2 * c.rounding))


def test_moniqua_is_off_by_the_range_where_x_is_too_far():
    c = compression.Moniqua(1.0)
    got = c.decompress(c.compress(np.array([1.5])), np.array([0.0]))
    assert got[0] == pytest.approx(1.5 - c.range, abs=c.error)


def test_moniqua_needs_a_reference_of_the_same_shape():
    c = compression.Moniqua(1.0)
    payload = c.compress(np.zeros(3))
    with pytest.raises(ContractError, match="needs that vector"):
        c.decompress(payload)
    with pytest.raises(ContractError, match=r"reference is float64\[4\]"):
        c.decompress(payload, np.zeros(4))
    with pytest.raises(ContractError, match="reference is float32"):
        c.decompress(payload, np.zeros(3, np.float32))
    plain = compression.TopK(1)
    with pytest.raises(ContractError, match="needs no reference"):
        plain.decompress(plain.compress(np.zeros(3)), np.zeros(3))


@pytest.mark.parametrize("bits", [1, 4, 8])
def test_moniqua_rounds_to_the_nearest_level_around_the_wrap(bits):
    """The level above the last is the first: rounding up there costs no more than elsewhere."""
    c = compression.Moniqua(1.0, bits)
    x = np.linspace(-3 * c.range, 3 * c.range, 997)
    got = c.decompress(c.compress(x), x + 0.3)
    assert np.abs(got - x).max() <= c.error * (1 + 1e-9)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_dependent_columns_become_zero(kind):
    rng = np.random.default_rng(0)
    base = rng.normal(size=(50, 2)).astype(kind)
    columns = np.column_stack([base[:, 0], base[:, 0] * 3, base[:, 1], base @ [2.0, -7.0]])
    got = _lowrank.orthonormal(columns.astype(kind))
    assert not got[:, [1, 3]].any()
    np.testing.assert_allclose(got.T @ got, np.diag([1, 0, 1, 0]), atol=4 * np.finfo(kind).eps)
