"""What an algorithm is: hyper-parameters, and two methods on an explicit state."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, Protocol, Self, final

import numpy as np

from dectool.algorithms._checks import check_number
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator
from dectool.topology import Schedule, Topology


class Gradient(Protocol):
    """The local gradient, and for those that ask for more (``Algorithm.oracle``) its inverses."""

    def __call__(self, x: Any, /) -> Any:
        """Return the gradient of f_i at x, in the shape of x."""

    def prox(self, v: Any, weight: Any) -> Any:
        r"""Return :math:`\arg\min_x f_i(x) + \frac c2 \|x - v\|^2`, where c is ``weight``."""

    def prox_regularizer(self, v: Any, step: Any) -> Any:
        r"""Return :math:`\mathrm{prox}_{s r}(v)` of the common term r, or v without one."""

    def conjugate(self, y: Any, start: Any = None) -> Any:
        r"""Return :math:`\nabla f_i^*(y)`, the x with gradient y; looked for from ``start``."""


class Curved(Protocol):
    """A problem, as far as hyper-parameters are chosen by it."""

    @property
    def L(self) -> float:
        """The smoothness of their mean."""

    @property
    def mu(self) -> float:
        """The strong convexity of their mean."""

    @property
    def L_max(self) -> float:
        """The largest smoothness of a local function."""

    @property
    def mu_min(self) -> float:
        """The smallest strong convexity of a local function."""


StepSize = float | Callable[[int], float]
"""A step size: a number, or a function of the step number k = 0, 1, ..."""


@final
class State(Mapping[str, Any]):
    """The state of an algorithm: named values, ``x`` (the iterate) among them; never changed.

    Example:
        >>> s = State(x=1.0, y=2.0)
        >>> s.x, dict(s.replace(x=3.0))
        (1.0, {'x': 3.0, 'y': 2.0})
    """

    __slots__ = ("_values",)

    _values: dict[str, Any]

    def __init__(self, **values: Any) -> None:
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(
                f"the state has no {name!r}; it has {', '.join(self._values)}"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a state is not changed; make another: state.replace({name}=...)")

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        return _state, (self._values,)

    def __repr__(self) -> str:
        return f"State({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"

    def replace(self, **values: Any) -> State:
        """Return a state with some values replaced."""
        return State(**{**self._values, **values})


def _state(values: dict[str, Any]) -> State:
    return State(**values)


@dataclasses.dataclass(frozen=True)
class Algorithm(abc.ABC):
    """A decentralized algorithm, written once against a :class:`dectool.Communicator`.

    A subclass is a frozen dataclass of hyper-parameters. ``init`` makes the first state from a
    starting point, ``step`` the next state from the last; neither changes what it is given. In
    both, x has shape (d,), or (n, d) where the communicator runs all ranks at once, so only
    operations along the last axis and element by element are used.

    Attributes:
        needs: What the theory asks of the topology; ``solve`` refuses what breaks it.
        exact: Whether the iterates tend to the optimum itself with a constant step size.
        uses_gradient: Whether ``grad`` is called at all.
        oracle: What it is asked for: "gradient", "prox" (``grad.prox``) or "conjugate"
            (``grad.conjugate``). The latter two need all of the local function, not samples of
            it; convex, or strongly convex.
        composite: Whether it minimises f + r, for a common term r that it knows by
            ``grad.prox_regularizer``.
        asynchronous: Whether ranks go on at their own pace, which asks for a backend where they
            have one: "sim" or "mpi".
        waits: Whether a step may wait for a step of another rank, so that all must take equally
            many: then ``solve`` takes ``steps``, and no ``duration``.
        resumable: Whether the state is all there is, so that a run can go on from it; not so
            where values wait in windows.
        may_rest: Whether a step size of 0 is allowed, for averaging alone.
    """

    needs: ClassVar[Needs] = Needs()
    exact: ClassVar[bool] = True
    uses_gradient: ClassVar[bool] = True
    oracle: ClassVar[Literal["gradient", "prox", "conjugate"]] = "gradient"
    composite: ClassVar[bool] = False
    asynchronous: ClassVar[bool] = False
    waits: ClassVar[bool] = True
    resumable: ClassVar[bool] = True
    may_rest: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the step size, and take numbers of NumPy as Python's."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            # A float64 of NumPy would make float64 of single precision, and JSON knows none.
            if isinstance(value, np.generic):
                object.__setattr__(self, field.name, value.item())
        rate: Any = getattr(self, "lr", None)
        at_rest = self.may_rest and rate is not False and rate == 0
        if hasattr(self, "lr") and not callable(rate) and not at_rest:
            check_number(self.name, "lr", rate, advice="or a function of the step")

    @classmethod
    def suggested(cls, problem: Curved, topology: Topology | Schedule) -> dict[str, Any]:
        """Return hyper-parameters that suit a problem and a topology.

        A step size of 1/(2 L_max) where there is one, unless the method's theory says otherwise.

        Args:
            problem: Whose local functions.
            topology: Who talks to whom.

        Raises:
            ArgumentError: The theory has none for this problem.
        """
        has_lr = any(field.name == "lr" for field in dataclasses.fields(cls))
        return {"lr": 0.5 / problem.L_max} if has_lr else {}

    @classmethod
    def for_problem(cls, problem: Curved, topology: Topology | Schedule, **parameters: Any) -> Self:
        """Return the algorithm with the hyper-parameters that are :meth:`suggested`.

        Args:
            problem: As there.
            topology: As there.
            **parameters: Hyper-parameters to have in their place.

        Raises:
            ArgumentError: As there, or a hyper-parameter is out of its range.

        Example:
            >>> from dectool import algorithms, problems, topology
            >>> q = problems.Averaging([[1.0], [3.0]])
            >>> algorithms.SSDA.for_problem(q, topology.ring(2), momentum=0.5)
            SSDA(lr=1.0, momentum=0.5)
        """
        return cls(**{**cls.suggested(problem, topology), **parameters})

    @property
    def name(self) -> str:
        """Name for tables and messages."""
        return type(self).__name__

    @property
    def period(self) -> int:
        """Steps after which the steps repeat: 1, unless some of them differ, as in local SGD."""
        return 1

    @abc.abstractmethod
    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Return the first state, at ``x``."""

    @abc.abstractmethod
    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Return the state after ``s``."""

    def at(self, k: int) -> Self:
        """Return the algorithm as step ``k`` needs it.

        Every scheduled hyper-parameter has its value for that step, and an algorithm with a
        ``period`` knows where in it the step lies. So a loop of one's own calls
        ``algorithm.at(k).step(...)``.

        Example:
            >>> from dectool import algorithms
            >>> algorithms.DGD(lr=lambda k: 1.0 / (k + 1)).at(3).lr
            0.25
        """
        scheduled = {
            field.name: value(k)
            for field in dataclasses.fields(self)
            if callable(value := getattr(self, field.name))
        }
        return dataclasses.replace(self, **scheduled) if scheduled else self

    def parameters(self) -> dict[str, Any]:
        """Return the hyper-parameters by name; functions of the step by their ``repr``."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: repr(v) if callable(v) else v for name, v in values.items()}
