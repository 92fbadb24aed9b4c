"""Statements of the literature, each a function that measures and predicts.

Every function runs the library's own code on a topology and a problem (yours, or a small one),
computes what theory says without it, and returns a :class:`dectool.theory.Evidence`: its
``verdict`` is true or false, its text says by how much, and its ``plot`` draws both.

A topology, a schedule or a problem that is none is an :class:`dectool.errors.ArgumentTypeError`.
"""

from dectool.theory.claims._bias import (
    bias_is_proportional_to_heterogeneity as bias_is_proportional_to_heterogeneity,
    bias_is_proportional_to_step_and_inverse_gap as bias_is_proportional_to_step_and_inverse_gap,
    diffusion_ends_at_its_fixed_point as diffusion_ends_at_its_fixed_point,
    momentum_enlarges_the_bias as momentum_enlarges_the_bias,
)
from dectool.theory.claims._byzantine import (
    clipping_bounds_byzantine_ranks as clipping_bounds_byzantine_ranks,
)
from dectool.theory.claims._changing import (
    averaging_needs_joint_connectivity as averaging_needs_joint_connectivity,
    descent_on_a_cycle_follows_its_period_map as descent_on_a_cycle_follows_its_period_map,
    products_contract_by_the_product_of_factors as products_contract_by_the_product_of_factors,
)
from dectool.theory.claims._choco import (
    choco_gossip_keeps_its_bound as choco_gossip_keeps_its_bound,
    choco_gossip_slows_down_with_the_contraction as choco_gossip_slows_down_with_the_contraction,
)
from dectool.theory.claims._clocks import (
    adpsgd_mean_follows_a_linear_recursion as adpsgd_mean_follows_a_linear_recursion,
    broadcast_gossip_agrees_on_a_random_value as broadcast_gossip_agrees_on_a_random_value,
    gossip_on_clocks_has_an_exponential_mean as gossip_on_clocks_has_an_exponential_mean,
    swarm_mean_follows_a_linear_recursion as swarm_mean_follows_a_linear_recursion,
)
from dectool.theory.claims._dual import (
    admm_is_its_block_matrix as admm_is_its_block_matrix,
    ssda_is_its_block_matrix as ssda_is_its_block_matrix,
)
from dectool.theory.claims._exact_methods import (
    d2_is_stable_above_minus_a_third as d2_is_stable_above_minus_a_third,
    exact_methods_are_their_block_matrices as exact_methods_are_their_block_matrices,
    exact_methods_outlast_their_theorems as exact_methods_outlast_their_theorems,
    linearized_admm_is_its_block_matrix as linearized_admm_is_its_block_matrix,
)
from dectool.theory.claims._finite_time import (
    base_k_averages_exactly as base_k_averages_exactly,
    de_bruijn_averages_exactly as de_bruijn_averages_exactly,
    laplacian_steps_average_exactly as laplacian_steps_average_exactly,
    one_peer_exponential_averages_exactly as one_peer_exponential_averages_exactly,
)
from dectool.theory.claims._gossip import (
    acceleration_takes_the_root_of_rounds as acceleration_takes_the_root_of_rounds,
    chebyshev_gossip_follows_its_polynomial as chebyshev_gossip_follows_its_polynomial,
    gossip_contracts_at_rho as gossip_contracts_at_rho,
    shift_register_gossip_follows_its_polynomial as shift_register_gossip_follows_its_polynomial,
)
from dectool.theory.claims._gradient_tracking import (
    gradient_tracking_is_its_block_matrix as gradient_tracking_is_its_block_matrix,
    push_pull_is_its_block_matrix as push_pull_is_its_block_matrix,
    push_sum_tracking_tends_to_its_block_matrix as push_sum_tracking_tends_to_its_block_matrix,
    tracked_gradients_sum_to_the_gradients as tracked_gradients_sum_to_the_gradients,
)
from dectool.theory.claims._identities import (
    complete_averaging_is_gradient_descent as complete_averaging_is_gradient_descent,
    push_methods_are_their_undirected_ones as push_methods_are_their_undirected_ones,
    relayed_gradients_arrive_late as relayed_gradients_arrive_late,
    uncompressed_methods_are_their_originals as uncompressed_methods_are_their_originals,
)
from dectool.theory.claims._noise import (
    noise_has_a_floor_in_each_mode as noise_has_a_floor_in_each_mode,
    noise_of_the_mean_is_divided_by_n as noise_of_the_mean_is_divided_by_n,
)
from dectool.theory.claims._optimal import (
    msda_needs_root_of_kappa as msda_needs_root_of_kappa,
    opapc_needs_root_of_kappa as opapc_needs_root_of_kappa,
    ssda_needs_root_of_kappa_over_gamma as ssda_needs_root_of_kappa_over_gamma,
)
from dectool.theory.claims._periodic import (
    global_averages_follow_their_period_map as global_averages_follow_their_period_map,
    global_averages_help_up_to_one_over_the_gap as global_averages_help_up_to_one_over_the_gap,
    local_descent_ends_at_a_weighted_mean as local_descent_ends_at_a_weighted_mean,
)
from dectool.theory.claims._push_sum import (
    push_sum_converges_at_the_second_eigenvalue as push_sum_converges_at_the_second_eigenvalue,
)
from dectool.theory.claims._random_gossip import (
    averaging_time_is_between_its_bounds as averaging_time_is_between_its_bounds,
    equidyn_contracts_alike_from_everywhere as equidyn_contracts_alike_from_everywhere,
    gossip_in_pairs_contracts_alike as gossip_in_pairs_contracts_alike,
    matcha_contracts_as_planned as matcha_contracts_as_planned,
    random_steps_contract_as_expected as random_steps_contract_as_expected,
    randomized_gossip_contracts_in_mean_square as randomized_gossip_contracts_in_mean_square,
)
from dectool.theory.claims._tracking_order import (
    gradient_tracking_needs_one_over_p_steps as gradient_tracking_needs_one_over_p_steps,
)
from dectool.theory.claims._transient import (
    exact_diffusion_gains_after_n3_over_gap2 as exact_diffusion_gains_after_n3_over_gap2,
    sgd_gains_after_n3_over_gap4 as sgd_gains_after_n3_over_gap4,
)

__all__ = [
    "acceleration_takes_the_root_of_rounds",
    "admm_is_its_block_matrix",
    "adpsgd_mean_follows_a_linear_recursion",
    "averaging_needs_joint_connectivity",
    "averaging_time_is_between_its_bounds",
    "base_k_averages_exactly",
    "bias_is_proportional_to_heterogeneity",
    "bias_is_proportional_to_step_and_inverse_gap",
    "broadcast_gossip_agrees_on_a_random_value",
    "chebyshev_gossip_follows_its_polynomial",
    "choco_gossip_keeps_its_bound",
    "choco_gossip_slows_down_with_the_contraction",
    "clipping_bounds_byzantine_ranks",
    "complete_averaging_is_gradient_descent",
    "d2_is_stable_above_minus_a_third",
    "de_bruijn_averages_exactly",
    "descent_on_a_cycle_follows_its_period_map",
    "diffusion_ends_at_its_fixed_point",
    "equidyn_contracts_alike_from_everywhere",
    "exact_diffusion_gains_after_n3_over_gap2",
    "exact_methods_are_their_block_matrices",
    "exact_methods_outlast_their_theorems",
    "global_averages_follow_their_period_map",
    "global_averages_help_up_to_one_over_the_gap",
    "gossip_contracts_at_rho",
    "gossip_in_pairs_contracts_alike",
    "gossip_on_clocks_has_an_exponential_mean",
    "gradient_tracking_is_its_block_matrix",
    "gradient_tracking_needs_one_over_p_steps",
    "laplacian_steps_average_exactly",
    "linearized_admm_is_its_block_matrix",
    "local_descent_ends_at_a_weighted_mean",
    "matcha_contracts_as_planned",
    "momentum_enlarges_the_bias",
    "msda_needs_root_of_kappa",
    "noise_has_a_floor_in_each_mode",
    "noise_of_the_mean_is_divided_by_n",
    "one_peer_exponential_averages_exactly",
    "opapc_needs_root_of_kappa",
    "products_contract_by_the_product_of_factors",
    "push_methods_are_their_undirected_ones",
    "push_pull_is_its_block_matrix",
    "push_sum_converges_at_the_second_eigenvalue",
    "push_sum_tracking_tends_to_its_block_matrix",
    "random_steps_contract_as_expected",
    "randomized_gossip_contracts_in_mean_square",
    "relayed_gradients_arrive_late",
    "sgd_gains_after_n3_over_gap4",
    "shift_register_gossip_follows_its_polynomial",
    "ssda_is_its_block_matrix",
    "ssda_needs_root_of_kappa_over_gamma",
    "swarm_mean_follows_a_linear_recursion",
    "tracked_gradients_sum_to_the_gradients",
    "uncompressed_methods_are_their_originals",
]
