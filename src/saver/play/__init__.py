"""Following a policy through a model: its nodes, policies by node or by state, what a play expects."""

from saver.play.nodes import Nodes
from saver.play.policy import Policy
from saver.play.stage import Play, Stage, stage_of

__all__ = ["Nodes", "Play", "Policy", "Stage", "stage_of"]
