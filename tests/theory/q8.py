"""Eight scalar quadratics on a ring: the problem of the golden tables, and dense matrices of it."""

import numpy as np

from dectool import problems, topology

H = np.array([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0])
B = np.arange(8.0)
QUADRATIC = problems.Quadratic(h=H[:, None], b=B[:, None])
RING = topology.ring(8)
W = RING.to_dense()
EYE = np.eye(8)
