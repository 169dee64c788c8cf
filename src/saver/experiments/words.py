"""The sentences of the report."""

from __future__ import annotations


def _line(text: str) -> str:
    return " ".join(text.split())


CAPTIONS = {
    "paper": _line(
        """The paper's Figures 1 and 2, at its budgets. Top: mean squared error of the estimate, with bands
        of one standard error. Bottom: cumulative constraint violation, the true one; above the line at
        0 the constraint is broken. `limit / k` is the exact safe limit over k, which no safe way of
        collecting beats in the long run. The first 4 % of each campaign are left out of the errors. While
        actions are still unseen the error is mostly their bias."""
    ),
    "long": "The same for longer campaigns, and the paper's intractable bandit.",
    "regret": _line(
        """How fast the regret falls: points with two standard errors, and fitted power laws with their
        exponents. The paper proves n^(-3/2) up to logarithms for the regret against its own oracle."""
    ),
    "price": _line(
        """What safety costs: the limit of the exact safe design, and of the paper's way (its design and
        baseline episodes in turn), over the limit of the unconstrained optimum. Dotted: the default alpha."""
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
    """SaVeR is `saver`: the paper's design behind the certificate of this package, with its gate and its
    tracker. SaVeR as printed is `saver-paper`, with the paper's own. The oracle is `safe-oracle`: it knows
    the variances, mixes the paper's design with baseline episodes, and stands behind the certificate too.
    MSE is the mean squared error given the visits (`conditional_mse`), which has the same expectation as the
    plain one under Gaussian rewards and much less noise; SEPEC's importance-weighted estimate has only the
    plain one. A claim held if its number is inside its range by two standard errors, did not hold if it is
    outside by two, and cannot be told otherwise."""
)
MOVIELENS = _line(
    """On MovieLens the rating variances differ little: the exact safe limit is {gain:.1%} below that of the
    target itself, so that there is little to gain over on-policy collection."""
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
.held{color:#00693e}.did{color:#a02020;font-weight:600}
.cannot{color:#777}pre{background:#f5f5f5;padding:1rem;overflow:auto}"""
