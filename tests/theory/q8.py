"""Eight scalar quadratics on a ring: the problem of the golden tables, and dense matrices of it.

And a digraph: the directed ring with three chords, R of weights 1/(1 + in-degree), C of weights
1/(1 + out-degree).
"""

import networkx as nx
import numpy as np

from dectool import problems, topology

H = np.array([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0])
B = np.arange(8.0)
QUADRATIC = problems.Quadratic(h=H[:, None], b=B[:, None])
RING = topology.ring(8)
W = RING.to_dense()
EYE = np.eye(8)
DIGRAPH = nx.DiGraph([*((i, (i + 1) % 8) for i in range(8)), (0, 3), (2, 6), (5, 1)])
PULL = topology.from_graph(DIGRAPH, weights="uniform")
PUSH = topology.from_graph(DIGRAPH, weights="uniform_push")
