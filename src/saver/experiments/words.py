"""The sentences of the report."""

from __future__ import annotations


def _line(text: str) -> str:
    return " ".join(text.split())


CAPTIONS = {
    "paper": _line(
        """The paper's Figures 1 and 2, at its budgets. Top: mean squared error of the estimate, with bands
        of one standard error. Bottom: cumulative constraint violation, the true one; above the line at
        0 the constraint is broken. `limit / k` is the exact safe limit over k, which no safe way of
        collecting beats in the long run. While actions are still unseen the error is mostly their bias."""
    ),
    "long": "The same after 5,000 episodes, and the paper's intractable bandit.",
    "regret": _line(
        """How fast the regret falls, with the fitted exponents. The paper proves n^(-3/2) up to logarithms
        for a regret against its own oracle; against the exact safe optimum SaVeR's falls as 1/n,
        because its design is another one."""
    ),
    "price": _line(
        """What safety costs: the limit of the exact safe design, and of the paper's way (its design and
        baseline episodes in turn), over the limit of the unconstrained optimum. Dotted: alpha = 0.25."""
    ),
    "designs": _line(
        """The width of an edge of the tree is the share of episodes that take it. A cell of the gridworld
        shows its expected visits in an episode, and an arrow for the share of each direction."""
    ),
    "each": _line(
        """Middle: k times the error over the exact safe limit, 1 being the best that is possible in the
        long run."""
    ),
}
HOW = _line(
    """MSE is the mean squared error given the visits (`conditional_mse`), which has the same expectation
    as the plain one under Gaussian rewards and much less noise; SEPEC's importance-weighted estimate
    has only the plain one. A claim held if its number is inside its range by two standard errors, did
    not hold if it is outside by two, and cannot be told otherwise. Oracle is the paper's (`safe-
    oracle`): it knows the variances and mixes its design with baseline episodes."""
)
MOVIELENS = _line(
    """On MovieLens the rating variances differ little: the exact safe limit is {gain:.1%} below that of
    the target itself. There is little to gain over on-policy collection, and learning the variances
    costs SaVeR more than that."""
)
CITATION = """@inproceedings{saver2024,
  author    = {Mukherjee, Subhojyoti and Hanna, Josiah P. and Nowak, Robert},
  title     = {SaVeR: Optimal Data Collection Strategy for Safe Policy Evaluation in Tabular MDP},
  booktitle = {Proceedings of the 41st International Conference on Machine Learning},
  year      = {2024}
}"""
STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
img{max-width:100%}figure{margin:2rem 0}figcaption{color:#555;font-size:.9rem}table{border-collapse:collapse}
td,th{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top;font-size:.9rem}
td.n{text-align:right;white-space:nowrap}.held{color:#00693e}.did{color:#a02020;font-weight:600}
.cannot{color:#777}pre{background:#f5f5f5;padding:1rem;overflow:auto}"""
