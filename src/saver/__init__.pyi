"""The names of the package: those that are loaded when they are used stand here, and nowhere else."""

from saver import (
    data as data,
    design as design,
    errors as errors,
    estimate as estimate,
    experiments as experiments,
    journal as journal,
    problem as problem,
    safety as safety,
    scenarios as scenarios,
    theory as theory,
)
from saver.collect import (
    COLLECTORS as COLLECTORS,
    Campaign as Campaign,
    Collector as Collector,
    Comparison as Comparison,
    Knowledge as Knowledge,
    Precise as Precise,
    Statistics as Statistics,
    Trial as Trial,
)
from saver.engine.runs import Runs as Runs
from saver.engine.simulate import simulate as simulate
from saver.journal import DurableCampaign as DurableCampaign
from saver.journal.opening import open as open  # noqa: A004
from saver.problem import (
    END as END,
    Bernoulli as Bernoulli,
    Bounded as Bounded,
    Empirical as Empirical,
    Episode as Episode,
    Gaussian as Gaussian,
    Guardrail as Guardrail,
    History as History,
    Mdp as Mdp,
    Problem as Problem,
    Scenario as Scenario,
    SubGaussian as SubGaussian,
    Unknown as Unknown,
    World as World,
)
from saver.problem.codec import load as load, save as save
from saver.scenarios import SCENARIOS as SCENARIOS
from saver.simulator import Feedback as Feedback, Player as Player
from saver.theory import (
    Diagnosis as Diagnosis,
    Rehearsal as Rehearsal,
    diagnose as diagnose,
    rehearse as rehearse,
)

__version__: str
