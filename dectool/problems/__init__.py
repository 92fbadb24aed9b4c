r"""Problems to solve: objectives with known optima, real data, and ways to spread it.

Every problem is the mean of n local functions, one per rank; see `Problem` for what each offers.

Example:
    >>> from dectool import problems
    >>> data = problems.breast_cancer()
    >>> p = problems.LogisticRegression.from_data(data, n=16, l2=0.01, bias=True)
    >>> x = p.initial(rank=3)
    >>> p.grad(x, rank=3).shape, p.optimum.shape
    ((31,), (31,))
"""

from dectool.problems import partition as partition
from dectool.problems._among import Among as Among
from dectool.problems._averaging import Averaging as Averaging
from dectool.problems._bundled import breast_cancer as breast_cancer, digits as digits
from dectool.problems._classifier import Classifier as Classifier
from dectool.problems._composite import Composite as Composite
from dectool.problems._csv import load_csv as load_csv
from dectool.problems._data_problem import DataProblem as DataProblem
from dectool.problems._dataset import Dataset as Dataset
from dectool.problems._least_squares import LeastSquares as LeastSquares
from dectool.problems._libsvm import load_libsvm as load_libsvm
from dectool.problems._logistic import LogisticRegression as LogisticRegression
from dectool.problems._problem import Curvature as Curvature, Problem as Problem
from dectool.problems._quadratic import Quadratic as Quadratic
from dectool.problems._regularizers import (
    L1 as L1,
    Box as Box,
    Regularizer as Regularizer,
)
from dectool.problems._softmax import SoftmaxRegression as SoftmaxRegression

__all__ = [
    "L1",
    "Among",
    "Averaging",
    "Box",
    "Classifier",
    "Composite",
    "Curvature",
    "DataProblem",
    "Dataset",
    "LeastSquares",
    "LogisticRegression",
    "Problem",
    "Quadratic",
    "Regularizer",
    "SoftmaxRegression",
    "breast_cancer",
    "digits",
    "load_csv",
    "load_libsvm",
    "partition",
]
