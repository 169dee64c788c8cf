"""What the compiled loops are told of the guardrails, and keep of each: plain arrays, [rails, ...]."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.kernels.forms import record

NOISE, BOX, VALUE = range(3)  # what a `Rule` is for: designed trials, the box, V0
DESIGNED, DOWN, UP = range(3)  # whose logs: of designed trials, of baseline trials from below and from above

# Columns of `Rails.tables`, by pair: the laws; the true means; what the design is told of them, if it knows
# them; sample means for the design; samples, means and squares for the ledger; the box, or in the place of
# its middle m of `capital`, or, where there is no box, terms of the ledger's sum; the means as believed.
WHERE, SCALE, TRUE, KNOWN, MEAN, COUNTED, SEEN, SQUARED, LOWER, UPPER, MIDDLE, HALF, LIKELY = range(13)
COLUMNS, TERMS = 13, MIDDLE
# Rows of `Rails.visits`, discounted: of designed trials, expected and made; made by the baseline.
EXPECTED, REALISED, SAFELY = range(3)

# One guardrail, as compiled code reads it: `g.fixed[i].floor`.
FIXED = record(
    "sign", "r0", "r1", "c0", "c1",  # see `Rail`
    "tolerance", "unit",  # of the gate; of rounding
    "low", "high",  # of V0, as given
    "floor", "ceiling", "least", "most",  # of a mean; outside of these an observation is refused
    "noise", "proxy",  # its scale, and scale^2
    "cross_start", "cross_scale", "cross_level",  # of the boundary of noise and paths together
    "joint_level", "seen_level", "rho", "safe_rho",  # where V0 is learned: see `LearnedBaseline`
    "length",  # of the longest episode
    "full",  # the proxy of an episode of full length
    "range", "bottom", "alike",  # of a return, its least, and how many steps are alike: see `capital`
    "span",  # of what an episode may be worth, where it is known by its return alone
    "first_proxy", "first_longest", "first_low",  # for the last trial before there is one
    "true_value", "true_required",  # of the baseline
    "true_unit",  # in which true budgets are compared
    whole=(
        "draws", "law",  # which guardrail the world draws at this place; the kind of its law
        "learned", "bounded",  # V0 is; observations are
        "model_free",  # trials are known by their returns alone
        "paths",  # where episodes go, the baseline's included where V0 is learned, is left to chance
        "crosses", "bets",  # then noise and paths are also bounded together; by bets: see `capital`
    ),
)  # fmt: skip

# What is kept of one guardrail between two episodes, and of the episode.
KEPT = record(
    "gained", "proxy", "guessed", "length", "bound", "sum_x", "sum_v",  # of designed trials
    "last_proxy", "last_longest", "last_low",
    "count", "safe_gained", "safe_proxy", "safe_guessed", "safe_length",  # of baseline trials,
    "safe_x", "value_low", "value_high",  # where V0 is learned
    "renews",  # the trial with which m is made anew
    "earned", "worst",  # truly
    "worth", "value",  # of the candidate, and of what is played, truly
    "low", "centre", "spread",  # V(b; lower ends), V(b; m) and V(b; h^2)
    "total", "guess",  # of the episode: sum discount^t C, and sum discount^t m
    "believed",  # what an episode that follows a plan will earn; NaN where nothing is
)  # fmt: skip


class Rails(NamedTuple):
    """The guardrails of one run; those of all runs begin as copies of one."""

    certified: bool
    drawn: bool  # what a trial is worth is decided by its draws
    paths: bool  # some guardrail asks where designed trials were expected, and were
    knows: bool  # the collector knows the means
    history: int  # logged baseline episodes
    fixed: Any  # [m], records of FIXED
    state: Any  # [m], records of KEPT
    cells: Floats  # the same memory, for clearing it
    tables: Floats  # [m, COLUMNS, pairs]
    shaped: Floats  # the same memory as [m, COLUMNS, S, A]
    visits: Floats  # [3, pairs]
    bets: Floats  # [2, m, 2, any]: rates and weights of each `Capital`, of designed trials and of V0
    logs: Floats  # [3, m, any], of `Capital`
    levels: Floats  # [3, m, 2]: rho and level of each `Rule`
    rates: Floats  # [3, m, 3, RATES]: its rates, growth (or costs) and weights
    table: Floats  # of one guardrail where all goes one way: what noise may hide after j full episodes,
    depth: Floats  # and how far below a mean of j samples its lower end is; else none
    data: Floats  # of empirical laws

    def copy(self) -> Rails:
        """The same for another run."""
        names = ("cells", "shaped", "visits", "logs")
        own: dict[str, Any] = {name: np.array(getattr(self, name)) for name in names}
        own["tables"] = own["shaped"].reshape(self.tables.shape)
        return self._replace(state=own["cells"].view(KEPT).view(np.recarray), **own)
