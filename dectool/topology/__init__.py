"""Graphs, mixing matrices, and schedules of them.

A :class:`Topology` is a graph with a checked mixing matrix W, where W[i, j] is the weight that
rank i gives to what it receives from rank j; a :class:`Schedule` has a topology for every step.

Example:
    >>> from dectool import topology
    >>> topology.ring(16)
    <Topology: ring of 16, 16 edges, metropolis_hastings, doubly stochastic>
"""

from dectool.topology._base_k import (
    base_k as base_k,
    hyper_hypercube as hyper_hypercube,
    simple_base_k as simple_base_k,
)
from dectool.topology._convert import from_graph as from_graph, from_matrix as from_matrix
from dectool.topology._digraphs import (
    de_bruijn as de_bruijn,
    directed_ring as directed_ring,
    random_digraph as random_digraph,
)
from dectool.topology._effective import (
    effective_number_of_neighbors as effective_number_of_neighbors,
)
from dectool.topology._equi import (
    equidyn as equidyn,
    equistatic as equistatic,
)
from dectool.topology._expanders import (
    margulis as margulis,
    paley as paley,
    random_lift as random_lift,
)
from dectool.topology._families import (
    NAMED as NAMED,
    barbell as barbell,
    complete_bipartite as complete_bipartite,
    named as named,
    petersen as petersen,
    tree as tree,
)
from dectool.topology._fastest_time import (
    ConsensusPlan as ConsensusPlan,
    fastest_consensus as fastest_consensus,
)
from dectool.topology._finite_time import finite_time_length as finite_time_length
from dectool.topology._graphs import (
    complete as complete,
    exponential as exponential,
    grid as grid,
    hypercube as hypercube,
    path as path,
    ring as ring,
    star as star,
    torus as torus,
)
from dectool.topology._law import Law as Law
from dectool.topology._matcha import (
    MatchaPlan as MatchaPlan,
    matcha as matcha,
    matcha_plan as matcha_plan,
)
from dectool.topology._mean_square import (
    expected_contraction as expected_contraction,
    mean_square_rate as mean_square_rate,
)
from dectool.topology._pairs import (
    alternating_ring as alternating_ring,
    geographic_gossip as geographic_gossip,
    one_peer_hypercube as one_peer_hypercube,
    random_pair as random_pair,
)
from dectool.topology._quantities import (
    consensus_rate as consensus_rate,
    consensus_rounds as consensus_rounds,
    dobrushin as dobrushin,
    mixing_time as mixing_time,
)
from dectool.topology._random import (
    erdos_renyi as erdos_renyi,
    geometric as geometric,
    random_regular as random_regular,
)
from dectool.topology._random_models import (
    barabasi_albert as barabasi_albert,
    stochastic_block as stochastic_block,
    watts_strogatz as watts_strogatz,
)
from dectool.topology._random_steps import (
    random_broadcast as random_broadcast,
    random_choice as random_choice,
    random_one_peer as random_one_peer,
)
from dectool.topology._resistance import effective_resistance as effective_resistance
from dectool.topology._schedule import Schedule as Schedule
from dectool.topology._schedules import (
    as_schedule as as_schedule,
    one_peer_exponential as one_peer_exponential,
    periodic as periodic,
    random_matching as random_matching,
    shift_one as shift_one,
    static as static,
)
from dectool.topology._sequences import (
    b_connected as b_connected,
    laplacian_sequence as laplacian_sequence,
)
from dectool.topology._topology import Topology as Topology
from dectool.topology._two_level import (
    inner_outer_exponential as inner_outer_exponential,
    inner_outer_ring as inner_outer_ring,
)
from dectool.topology._validation import TOLERANCE as TOLERANCE
from dectool.topology._weights import WEIGHTS as WEIGHTS, Weights as Weights

__all__ = [
    "NAMED",
    "TOLERANCE",
    "WEIGHTS",
    "ConsensusPlan",
    "Law",
    "MatchaPlan",
    "Schedule",
    "Topology",
    "Weights",
    "alternating_ring",
    "as_schedule",
    "b_connected",
    "barabasi_albert",
    "barbell",
    "base_k",
    "complete",
    "complete_bipartite",
    "consensus_rate",
    "consensus_rounds",
    "de_bruijn",
    "directed_ring",
    "dobrushin",
    "effective_number_of_neighbors",
    "effective_resistance",
    "equidyn",
    "equistatic",
    "erdos_renyi",
    "expected_contraction",
    "exponential",
    "fastest_consensus",
    "finite_time_length",
    "from_graph",
    "from_matrix",
    "geographic_gossip",
    "geometric",
    "grid",
    "hyper_hypercube",
    "hypercube",
    "inner_outer_exponential",
    "inner_outer_ring",
    "laplacian_sequence",
    "margulis",
    "matcha",
    "matcha_plan",
    "mean_square_rate",
    "mixing_time",
    "named",
    "one_peer_exponential",
    "one_peer_hypercube",
    "paley",
    "path",
    "periodic",
    "petersen",
    "random_broadcast",
    "random_choice",
    "random_digraph",
    "random_lift",
    "random_matching",
    "random_one_peer",
    "random_pair",
    "random_regular",
    "ring",
    "shift_one",
    "simple_base_k",
    "star",
    "static",
    "stochastic_block",
    "torus",
    "tree",
    "watts_strogatz",
]
