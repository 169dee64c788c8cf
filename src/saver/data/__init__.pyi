"""The names of this room."""

from saver.data.envs import ScenarioEnv as ScenarioEnv, register as register
from saver.data.episodes import Episodes as Episodes, from_campaign as from_campaign
from saver.data.fitted import Fitted as Fitted
from saver.data.fitting import fit as fit, problem as problem
from saver.data.gymmodels import (
    from_gymnasium as from_gymnasium,
    unknown_from_gymnasium as unknown_from_gymnasium,
    world_from_gymnasium as world_from_gymnasium,
)
from saver.data.offpolicy import (
    Evaluation as Evaluation,
    OffPolicy as OffPolicy,
    evaluate as evaluate,
    off_policy as off_policy,
)
from saver.data.playing import CutOff as CutOff, play as play, play_many as play_many
from saver.data.reading import read_log as read_log
from saver.data.scales import Scale as Scale
