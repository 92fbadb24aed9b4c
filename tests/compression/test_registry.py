"""Names: every compressor can be spelled and read back, and what is wrong is said."""

import dataclasses
import pickle

import pytest

from dectool import compression as c
from dectool.errors import ArgumentError, ArgumentTypeError

TEXTS = {
    "identity": c.Identity(),
    "cast:bfloat16": c.Cast("bfloat16"),
    "minmax8": c.MinMax8(),
    "minmax8:1024": c.MinMax8(block=1024),
    "qsgd": c.QSGD(),
    "qsgd:8": c.QSGD(levels=8),
    "qsgd:8,max": c.QSGD(8, "max"),
    "qsgd:norm=max,elias=true": c.QSGD(norm="max", elias=True),
    "natural": c.Natural(),
    "sign": c.ScaledSign(),
    "topk:0.01": c.TopK(0.01),
    "topk:2": c.TopK(2),
    "randomk:0.2": c.RandomK(0.2),
    "randomk:0.2,unbiased=true": c.RandomK(0.2, unbiased=True),
    "threshold:1e-3": c.Threshold(1e-3),
    "lowrank:2": c.LowRank(2),
    "lowrank:2,shape=64x100": c.LowRank(2, shape=(64, 100)),
    "moniqua:0.5,bits=4,stochastic=true": c.Moniqua(0.5, 4, stochastic=True),
    "topk:0.01|qsgd:4": c.Compose(c.TopK(0.01), c.QSGD(4)),
    "topk:100|topk:10|sign": c.TopK(100) | (c.TopK(10) | c.ScaledSign()),
    "pertensor:qsgd:4": c.PerTensor(c.QSGD(4)),
    "ef:pertensor:topk:0.01|sign": c.ErrorFeedback(c.PerTensor(c.TopK(0.01) | c.ScaledSign())),
    "ef:topk:0.01": c.ErrorFeedback(c.TopK(0.01)),
    "ef:topk:0.01|qsgd:4": c.ErrorFeedback(c.TopK(0.01) | c.QSGD(4)),
    "ef21:sign": c.EF21(c.ScaledSign()),
    "difference:qsgd:2": c.Difference(c.QSGD(2)),
    "difference:[rate=0.5]:qsgd:2": c.Difference(c.QSGD(2), rate=0.5),
    "difference:[0.5]:qsgd:2": c.Difference(c.QSGD(2), rate=0.5),
    "ef:warm:lowrank:2": c.ErrorFeedback(c.WarmStart(c.LowRank(2))),
    # names of classes, spaces, capitals
    "TopK:0.01": c.TopK(0.01),
    "ScaledSign": c.ScaledSign(),
    "ErrorFeedback:TopK:1": c.ErrorFeedback(c.TopK(1)),
    " qsgd : 4 , norm = max ": c.QSGD(4, "max"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_gives_the_compressor_and_its_name_gives_it_back(text):
    made = c.get(text)
    assert made == TEXTS[text]
    assert type(made) is type(TEXTS[text])
    assert c.get(made.name) == made
    assert str(made) == made.name
    assert c.get(made) is made
    assert pickle.loads(pickle.dumps(made)) == made
    assert hash(made) == hash(TEXTS[text])


def test_every_compressor_has_a_name_and_is_public():
    kinds = {getattr(c, name) for name in c.__all__ if isinstance(getattr(c, name), type)}
    kinds -= {c.Compressor, c.Sparsifier, c.StatefulCompressor, c.Stateless, c.Payload, c.Memory}
    assert set(c.COMPRESSORS.values()) == kinds - {c.Compose}
    for kind in kinds:
        assert dataclasses.is_dataclass(kind)
        assert kind.__dataclass_params__.frozen
        assert kind.__doc__


def test_long_chains_associate_to_the_right():
    chained = c.TopK(9) | c.TopK(3) | c.ScaledSign()
    assert chained == c.Compose(c.TopK(9), c.Compose(c.TopK(3), c.ScaledSign()))


WRONG = {
    "topq:1": "compressor 'topq' is unknown; did you mean 'topk'",
    "zzzzzz": "known: cast, difference, ef, ",
    "topk": "TopK needs k, as in topk:",
    "topk:1,2": "at most 1 parameter",
    "identity:3": "takes no parameters",
    "qsgd:4,nrom=max": "no parameter 'nrom'; did you mean 'norm'",
    "qsgd:4,levels=3": "levels is given twice",
    "qsgd:levels=0": "levels must be at least 1",
    "qsgd:40000": "at most 32767",
    "qsgd:4,norm=l1": "norm='l1'",
    "topk:0": "k must be at least 1",
    "topk:1.0": "a share must be above 0 and below 1",
    "topk:-0.5": "a share must be above 0 and below 1",
    "randomk:2.5": "a share must be above 0 and below 1",
    "threshold:0": "must be finite and above 0",
    "threshold:nan": "must be finite and above 0",
    "moniqua:inf": "must be finite and above 0",
    "moniqua:1,bits=17": "bits must be from 1 to 16",
    "moniqua:1,bits=1,stochastic=true": "bits must be from 2 to 16",
    "cast:bfloat61": "did you mean 'bfloat16'",
    "minmax8:0": "block must be at least 1",
    "ef": "wraps a compressor",
    "ef:": "wraps a compressor",
    "topk:1|ef:sign": "has a memory",
    "threshold:1|qsgd:4": "without chance, and not qsgd",
    "difference:[rate=0.5:qsgd": "unknown",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said(text):
    with pytest.raises(ArgumentError) as caught:
        c.get(text)
    assert WRONG[text] in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: c.get(None), "give a name"),
        (lambda: c.TopK("many"), "k is a whole number"),
        (lambda: c.TopK(True), "k is a whole number"),
        (lambda: c.QSGD(levels=2.5), "levels is a whole number"),
        (lambda: c.QSGD(levels=True), "levels is a whole number"),
        (lambda: c.MinMax8(block="all"), "block is a whole number"),
        (lambda: c.Threshold("big"), "threshold is a number"),
        (lambda: c.LowRank(1, shape=5), "shape is (rows, columns)"),
        (lambda: c.LowRank(1, shape=(2, 2.5)), "shape is a whole number"),
        (lambda: c.ScaledSign() | c.TopK(1), "begin with TopK"),
        (lambda: c.TopK(1) | c.Moniqua(1.0), "cannot compress the values"),
        (lambda: c.get("pertensor:ef:topk:1"), "wrap a compressor without memory"),
        (lambda: c.get("pertensor:pertensor:topk:1"), "wrap a compressor without memory"),
        (lambda: c.get("topk:2|pertensor:sign"), "cannot compress the values"),
    ],
)
def test_wrong_types_are_refused(make, message):
    with pytest.raises(ArgumentTypeError) as caught:
        make()
    assert message in str(caught.value)


def test_the_wrong_matrix_is_refused():
    with pytest.raises(ArgumentError, match="x has 7 numbers and the matrix 6"):
        c.LowRank(1, shape=(2, 3)).wire_bytes(7)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    from dectool.errors import MissingDependencyError

    with pytest.raises(MissingDependencyError, match="pip install ml-dtypes"):
        c.Cast("float8_e5m2")
    c.Cast("bfloat16")


@pytest.mark.parametrize(
    "text",
    ["qsgd", "qsgd:8,max", "minmax8:1024", "topk:0.01", "lowrank:2,64x100", "sign",
     "moniqua:0.5,stochastic=true", "topk:0.01|qsgd", "difference:[rate=0.5]:qsgd:2", "ef:sign"],
)  # fmt: skip
def test_names_are_short(text):
    assert c.get(text).name == text
