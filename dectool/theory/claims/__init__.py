"""Statements of the literature, each a function that measures and predicts.

Every function runs the library's own code on a topology and a problem (yours, or a small one),
computes what theory says without it, and returns a :class:`dectool.theory.Evidence`: its
``verdict`` is true or false, its text says by how much, and its ``plot`` draws both.
"""

from dectool.theory.claims._gossip import gossip_contracts_at_rho as gossip_contracts_at_rho

__all__ = ["gossip_contracts_at_rho"]
