"""What tests of solve share: small problems, every algorithm, what makes two histories equal."""

import numpy as np

import dectool
from dectool import algorithms, problems, topology
from dectool.metrics import COLUMNS

BACKENDS = ("stacked", "sim")
H = np.array([1.0, 2, 3, 4, 1, 2, 3, 4])[:, None]
ALL = {
    name: algorithms.get(name, **({"lr": 0.05} if "lr" in kind.__dataclass_fields__ else {}))
    for name, kind in algorithms.ALGORITHMS.items()
    if not kind.asynchronous
}
TRACKING = algorithms.ATCGradientTracking(lr=0.05)


def quadratic():
    return problems.Quadratic(h=H, b=np.arange(8.0)[:, None])


def logistic(n=8):
    data = problems.breast_cancer(rows=80)
    return problems.LogisticRegression.from_data(data, n=n, l2=0.1, bias=True)


def solve(algorithm=None, problem=None, **options):
    options = {"topology": topology.ring(8), "steps": 20, **options}
    return dectool.solve(
        algorithms.EXTRA(lr=0.1) if algorithm is None else algorithm,
        quadratic() if problem is None else problem,
        **options,
    )


def same_bits(a, b):
    assert a.state.keys() == b.state.keys()
    for name, value in a.state.items():
        assert np.asarray(value).tobytes() == np.asarray(b.state[name]).tobytes(), name


def same_records(a, b, columns=COLUMNS):
    for name in columns:
        assert a[name].dtype == b[name].dtype
        assert a[name].tobytes() == b[name].tobytes(), name
