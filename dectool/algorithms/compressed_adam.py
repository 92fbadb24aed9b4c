"""Adam with a compressed momentum: 1-bit Adam as published, and what BAGUA has in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._checks import check_below_one, check_number, check_whole
from dectool.algorithms._compressed import CompressedAlgorithm, Compression
from dectool.algorithms._needs import Needs
from dectool.algorithms._two_phases import first_errors, mean_with_feedback
from dectool.algorithms.compressed_gradients import byte_mean
from dectool.communicator import Communicator


@dataclass(frozen=True)
class _Adam(CompressedAlgorithm):
    """What both have: moments, and a number of steps after which the second one is frozen."""

    needs: ClassVar[Needs] = Needs("any")
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        for name in ("beta1", "beta2"):
            check_below_one(self.name, name, getattr(self, name))
        check_number(self.name, "epsilon", getattr(self, "epsilon", None))
        check_whole(self.name, "warmup", getattr(self, "warmup", None), 1)


@final
@dataclass(frozen=True)
class OneBitAdam(_Adam):
    r"""1-bit Adam: Adam for some steps, then momentum in one bit, scaled by a frozen variance.

    For the first `warmup` steps, with g the exact mean gradient,

    .. math:: m \leftarrow \beta_1 m + (1 - \beta_1) g, \qquad
       v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \qquad
       x \leftarrow x - \alpha\, m / (\sqrt v + \epsilon)

    where :math:`\alpha` is `lr`; the paper's Adam has no bias correction. Then v stays, and

    .. math:: m_i &= \beta_1 m + (1 - \beta_1) \nabla f_i(x), \quad
         \hat m_i = C(m_i + e_i), \quad e_i \leftarrow m_i + e_i - \hat m_i \\
       \bar m &= \tfrac1n \sum_i \hat m_i, \quad m = C(\bar m + \bar e), \quad
         \bar e \leftarrow \bar m + \bar e - m, \quad
         x \leftarrow x - \alpha\, m / (\sqrt v + \epsilon)

    Each rank averages one of n equal blocks and keeps that block of :math:`\bar e`; every block has
    a scale of its own. A rank sends 2 (n - 1)/n of a compressed array per step. With a constant
    step it tends to a point near the optimum. The topology is not used.

    Args:
        lr: Step size α, or a function of the step.
        warmup: Steps of Adam; the paper takes some 15 to 25 % of all.
        beta1: β₁.
        beta2: β₂.
        epsilon: ε; after the warm-up too, where the paper has none.
        compressor: C of fixed size, or its name.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> method = algorithms.OneBitAdam(lr=0.01, warmup=50)
        >>> h = dectool.solve(method, q, topology=topology.ring(3), steps=500)
        >>> h.last["gap"] < 1e-2
        True

    References:
        H. Tang et al., 1-bit Adam: Communication efficient large-scale training with Adam's
        convergence speed, ICML 2021, Algorithm 1.
    """

    lr: StepSize
    warmup: int = 100
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    compressor: Compression = "sign"

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, with moments and errors at zero; ranks that start apart stay apart."""
        zero = 0.0 * x
        error, mean_error = first_errors(comm, x)
        return State(x=x, m=zero, v=zero, error=error, mean_error=mean_error, t=0, draws=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Take a step of Adam, or of momentum in one bit."""
        if s.t < self.warmup:
            g = comm.allreduce(grad(s.x))
            m = self.beta1 * s.m + (1 - self.beta1) * g
            v = self.beta2 * s.v + (1 - self.beta2) * g * g
            return s.replace(x=self._moved(s.x, m, v), m=m, v=v, t=s.t + 1)
        m_own = self.beta1 * s.m + (1 - self.beta1) * grad(s.x)
        errors = (s.error, s.mean_error)
        m, errors, draws = mean_with_feedback(comm, m_own, errors, self.compressor, s.draws)
        x = self._moved(s.x, m, s.v)
        return State(
            x=x, m=m, v=s.v, error=errors[0], mean_error=errors[1], t=s.t + 1, draws=draws
        )  # fmt: skip

    def _moved(self, x: Any, m: Any, v: Any) -> Any:
        return x - self.lr * m / (np.sqrt(v) + self.epsilon)


@final
@dataclass(frozen=True)
class QAdam(_Adam):
    r"""BAGUA's QAdam, as its code does it: 8-bit momentum without error feedback.

    BAGUA's papers report 1-bit Adam, which is :class:`OneBitAdam`; its code has this. For steps
    t = 1, 2, ..., Adam on the mean gradient while t < `warmup`, then with v frozen

    .. math:: m = \operatorname{mean}_{8\,\mathrm{bit}}
       \big(\beta_1 m + (1 - \beta_1) \nabla f_i(x)\big), \qquad
       x \leftarrow x - \frac{\alpha}{1 - \beta_1^t}\,
       \frac{m}{\sqrt v / \sqrt{1 - \beta_2^t} + \epsilon}

    with the mean of :class:`ByteGrad`. Two properties of that code are kept:

    * The gradient of step t = `warmup` is averaged and then dropped: neither m nor v sees it.
    * The bias correction goes on with t while v is frozen, so that the step grows, in the long run
      by :math:`1/\sqrt{1 - \beta_2^{w - 1}}` times what a frozen one would be.

    Args:
        lr: Step size α, or a function of the step.
        warmup: Steps before the momentum is compressed.
        beta1: β₁.
        beta2: β₂.
        epsilon: ε.
        compressor: The 8-bit compressor, or its name.
        hierarchical: Whether only one rank of each node compresses; see :class:`ByteGrad`.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.QAdam(lr=0.01, warmup=50), q, topology=topology.ring(3),
        ...                   steps=500)
        >>> h.last["gap"] < 1e-2
        True

    References:
        S. Gan et al., BAGUA: Scaling up distributed learning with system relaxations, PVLDB
        15(4), 2021; ``QAdamOptimizer`` of its repository at version 0.9.2.
    """

    lr: StepSize
    warmup: int = 100
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    compressor: Compression = "minmax8"
    hierarchical: bool = True

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, with moments at zero; ranks that start apart stay apart."""
        return State(x=x, m=0.0 * x, v=0.0 * x, t=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Take a step of what BAGUA's code does."""
        t, m, v = s.t + 1, s.m, s.v
        if t <= self.warmup:
            g = comm.allreduce(grad(s.x))
            if t < self.warmup:
                m = self.beta1 * m + (1 - self.beta1) * g
                v = self.beta2 * v + (1 - self.beta2) * g * g
        else:
            m = self.beta1 * m + (1 - self.beta1) * grad(s.x)
            m = byte_mean(comm, m, self.compressor, self.hierarchical, t)
        scale = np.sqrt(v) / (1 - self.beta2**t) ** 0.5 + self.epsilon
        return State(x=s.x - self.lr / (1 - self.beta1**t) * m / scale, m=m, v=v, t=t)
