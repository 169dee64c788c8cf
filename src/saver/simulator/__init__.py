"""The other side of a campaign, simulated: a player, the truth that it keeps to itself, and one loop."""

from saver.simulator.asseen import scenario_of, world_of
from saver.simulator.feedback import Feedback
from saver.simulator.player import Player
from saver.simulator.rounds import Round, rounds
from saver.simulator.truth import Truth, knowledge_of

__all__ = ["Feedback", "Player", "Round", "Truth", "knowledge_of", "rounds", "scenario_of", "world_of"]
