"""The sentences of the report."""

from __future__ import annotations


def _line(text: str) -> str:
    return " ".join(text.split())


CAPTIONS = {
    "paper": _line(
        """The paper's Figures 1 and 2, at its budgets. Top: mean squared error of the estimate; the first 4 %
        of each campaign are left out. While actions are still unseen the error is mostly their bias. Bottom:
        cumulative constraint violation, the true one."""
    ),
    "long": "The same for longer campaigns, and the paper's intractable bandit.",
    "regret": _line(
        """How fast the regret falls. The paper proves n^(-3/2) up to logarithms for the regret against its
        own oracle."""
    ),
    "price": _line(
        """What safety costs: the limit of the exact safe design, and of the paper's way (its design and
        baseline episodes in turn), over the limit of the unconstrained optimum."""
    ),
    "designs": "Where each design sends an episode.",
    "each": _line(
        """Top: mean squared error of the estimate; the first 4 % of each campaign are left out. Middle: k
        times the error over the exact safe limit, 1 being the best that is possible in the long run. Bottom:
        cumulative constraint violation, the true one; of several guardrails each in its own units, and
        dashed what the collector believed possible."""
    ),
}
COLLECTED = {
    "saver": "`saver` is the paper's SaVeR with the certificate, the gate and the tracker of this package.",
    "saver-paper": "`saver-paper` is SaVeR as printed, with the paper's own ledger and gate, and no promise.",
    "safe-oracle": _line(
        """`safe-oracle` knows the variances and mixes the paper's design with baseline episodes, behind the
        certificate."""
    ),
    "saver-opt": "`saver-opt` plans the exact safe design from what it has seen, behind the certificate.",
    "exact-oracle": "`exact-oracle` knows everything and plays the exact safe design behind the certificate.",
    "model-oracle": "`model-oracle` knows the model too, and plans as `saver-opt` does.",
    "oracle": "`oracle` knows the variances and plays the paper's design without any guard.",
    "revar": "`revar` learns and plays the paper's design without any guard.",
    "on-policy": "`on-policy` plays the target without any guard.",
    "safe-on-policy": "`safe-on-policy` plays the target and baseline episodes, behind the certificate.",
    "sepec": _line(
        """`sepec` plays one behaviour that it fixes after a pilot, behind the certificate; its
        importance-weighted estimate has only the plain mean squared error."""
    ),
    "sepec-none": _line(
        """`sepec-none` plays one behaviour without side information, behind the certificate; its
        importance-weighted estimate has only the plain mean squared error."""
    ),
    "sepec-known": _line(
        """`sepec-known` plays the one behaviour that is best if everything is known, behind the
        certificate; its importance-weighted estimate has only the plain mean squared error."""
    ),
    "uniform": "`uniform` takes all actions equally often, without any guard.",
    "baseline": "`baseline` plays baseline episodes only.",
}  # what is said of each collector that was run
MSE = _line(
    """MSE is the mean squared error given the visits (`conditional_mse`), which has the same expectation as
    the plain one under Gaussian rewards and much less noise."""
)
GUARDED = _line(
    """In the units of each guardrail: what an episode of the baseline has, what an episode may have on
    average, and by how much the campaign kept that, truly and as the collector believed. Below 0 the promise
    is broken."""
)
VERDICTS = _line(
    """A claim held if its number is inside its range by two standard errors, did not hold if it is outside by
    two, and cannot be told otherwise."""
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
img{max-width:100%}figure{margin:2rem 0}figcaption{color:#555;font-size:.9rem}
table{border-collapse:collapse;width:100%}code{white-space:nowrap}
td,th{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top;font-size:.9rem}
.held{color:#00693e}.did{color:#a02020;font-weight:600}.cannot{color:#777}
pre{background:#f5f5f5;padding:1rem;white-space:pre-wrap;overflow-wrap:anywhere}
@media(max-width:48rem){thead{display:none}table,tbody,tr,td{display:block}
tr{border-bottom:2px solid #ccc;padding:.5rem 0}
td{border:0;padding:.1rem 0 .1rem 6.5rem;text-indent:-6.5rem;overflow-wrap:anywhere}
td::before{content:attr(data-name);display:inline-block;width:6.5rem;text-indent:0;color:#555;font-weight:400}}"""
