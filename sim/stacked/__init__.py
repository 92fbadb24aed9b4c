"""The stacked backend: all ranks as rows of one array."""

from dectool.sim.stacked._clocks import Clocks as Clocks
from dectool.sim.stacked._communicator import StackedCommunicator as StackedCommunicator
from dectool.sim.stacked._trees import unstack_tree as unstack_tree

__all__ = ["Clocks", "StackedCommunicator"]
