"""The report of a folder: figures, claims, settings, how to cite; Markdown and self-contained HTML."""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from saver.experiments import claims as claiming
from saver.experiments.catalogue import DESIGNS, EXPERIMENTS
from saver.experiments.claims import Claim
from saver.experiments.folder import FIGURES, Results
from saver.experiments.tables import Row

SAID = {
    "paper": "The paper's Figures 1 and 2, at its budgets. Top: mean squared error of the estimate; the "
    "first 4 % of each campaign are left out. While actions are still unseen the error is mostly their bias. "
    "Bottom: cumulative constraint violation, the true one.",
    "long": "The same for longer campaigns, and the paper's intractable bandit.",
    "regret": "How fast the regret falls. The paper proves n^(-3/2) up to logarithms for the regret against "
    "its own oracle.",
    "price": "What safety costs: the limit of the exact safe design, and of the paper's way (its design and "
    "baseline episodes in turn), over the limit of the unconstrained optimum.",
    "designs": "Where each design sends an episode.",
    "mse": "MSE is the mean squared error given the visits (`conditional_mse`), which has the same "
    "expectation as the plain one under Gaussian rewards and much less noise.",
    "guards": "In the units of each guardrail: what an episode of the baseline has, what an episode may have "
    "on average, and by how much the campaign kept that, truly and as the collector believed. Below 0 the "
    "promise is broken.",
    "verdicts": "A claim held if its number is inside its range by two standard errors, did not hold if it "
    "is outside by two, and cannot be told otherwise.",
    "movielens": "On MovieLens the rating variances differ little: the exact safe limit is {gain:.1%} below "
    "that of the target itself, so that there is little to gain over on-policy collection.",
    "each": "Top: mean squared error of the estimate; the first 4 % of each campaign are left out. Middle: k "
    "times the error over the exact safe limit, 1 being the best that is possible in the long run. Bottom: "
    "cumulative constraint violation, the true one; of several guardrails each in its own units, and dashed "
    "what the collector believed possible.",
}
WEIGHTED = "behind the certificate; its importance-weighted estimate has only the plain mean squared error."
COLLECTED = {  # what is said of each collector that was run
    "saver": "is the paper's SaVeR with the certificate, the gate and the tracker of this package.",
    "saver-paper": "is SaVeR as printed, with the paper's own ledger and gate, and no promise.",
    "safe-oracle": "knows the variances and mixes the paper's design with baseline episodes, behind the "
    "certificate.",
    "saver-opt": "plans the exact safe design from what it has seen, behind the certificate.",
    "exact-oracle": "knows everything and plays the exact safe design behind the certificate.",
    "model-oracle": "knows the model too, and plans as `saver-opt` does.",
    "oracle": "knows the variances and plays the paper's design without any guard.",
    "revar": "learns and plays the paper's design without any guard.",
    "on-policy": "plays the target without any guard.",
    "safe-on-policy": "plays the target and baseline episodes, behind the certificate.",
    "sepec": f"plays one behaviour that it fixes after a pilot, {WEIGHTED}",
    "sepec-none": f"plays one behaviour without side information, {WEIGHTED}",
    "sepec-known": f"plays the one behaviour that is best if everything is known, {WEIGHTED}",
    "uniform": "takes all actions equally often, without any guard.",
    "baseline": "plays baseline episodes only.",
}
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


ENOUGH = 30  # runs for a plain mean squared error to mean something
Columns = dict[str, str | Callable[[Row], str]]  # heads, and what stands below each
Words = list[tuple[str, ...]]  # a table, its head first


def _plain(row: Row) -> str:
    few = row["runs"] < ENOUGH or math.isnan(row["plain"])
    return "-" if few else f"{row['plain']:.3f} ± {row['plain_se']:.2g}"


CLAIMS: Columns = {
    "whose": "{who}",
    "claim": "{claim}",
    "measured": "{measured}",
    "number": "{value:.4g} ± {error:.2g}",
    "verdict": "{verdict}",
}
NUMBERS: Columns = {
    "experiment": "{experiment}",
    "collector": "{collector}",
    "runs": "{runs}",
    "K * MSE": "{k_mse:.4g} ± {k_mse_se:.1g}",
    "over the safe limit": lambda row: "-" if math.isnan(row["over_limit"]) else f"{row['over_limit']:.4g}",
    "plain / conditional MSE": _plain,
    "baseline": "{baseline_share:.1%}",
    "ever below 0": "{violation_rate:.2%}",
}
GUARDS: Columns = {
    "experiment": "{experiment}",
    "collector": "{collector}",
    "guardrail": "{guardrail}",
    "baseline": "{baseline_value:.4g}",
    "an episode": lambda row: f"at {'most' if row['cost'] else 'least'} {row['required']:.4g}",
    "budget": "{budget:.4g} ± {budget_se:.2g}",
    "believed": "{believed:.4g}",
    "ever below 0": "{violation_rate:.2%}",
}


def words(columns: Columns, rows: Iterable[Row]) -> Words:
    """The head, and rows as their columns say them."""
    forms = [form.format_map if isinstance(form, str) else form for form in columns.values()]
    return [tuple(columns), *(tuple(form(row) for form in forms) for row in rows)]


def claim_rows(found: list[Claim]) -> Words:
    """The claims in words."""
    return words(CLAIMS, (claim.row for claim in found))


def ends(results: Results) -> list[Row]:
    """The end of every curve, as numbers."""
    found = []
    for experiment in results.experiments:
        limit = results.limit(results.scenario(experiment))
        for curve in results.curves[experiment].values():
            (mse, spread), K = curve.last(), curve.end("episodes")
            row = {
                **{name: curve.rows[-1][name] for name in ("experiment", "collector", "episodes", "runs")},
                "k_mse": K * mse,
                "k_mse_se": K * spread,
                "over_limit": K * mse / limit if limit > 0 else math.nan,
                "plain": curve.end("mse") / mse if curve.conditional and mse > 0 else math.nan,
                "plain_se": curve.end("mse_se") / mse if mse > 0 else math.nan,
                **{name: curve.end(name) for name in ("baseline_share", "violation_rate")},
            }
            found.append(row)
    return found


def guard_ends(results: Results) -> list[Row]:
    """What is left of each of several guardrails at the end, as numbers."""
    return [
        {name: cell for name, cell in rails[collector].rows[-1].items() if name not in ("runs", "episode")}
        for experiment, curves in results.curves.items()
        for collector in curves
        for rails in results.guards(experiment).values()
    ]


# -- what the report holds, and its two forms ----------------------------------------------------------------


class Code(NamedTuple):
    """Text that is shown as it is."""

    language: str
    text: str


class Figures(NamedTuple):
    """Pictures with one caption."""

    caption: str
    files: list[Path]


Block = str | Words | Code | Figures
Parts = list[tuple[str, list[Block]]]  # headings, and what stands below each


def write_report(results: Results, figures: list[Path]) -> list[Claim]:
    """Write claims.csv (where all experiments are there), report.md and report.html; return the claims."""
    folder, settings = results.folder, results.folder.manifest()["settings"]
    found = claiming.claims(results) if set(EXPERIMENTS) <= set(results.experiments) else []
    if found:
        folder.write("claims", [claim.row.values() for claim in found])
    title = f"{', '.join(results.experiments)} (seed {settings.get('seed')})"
    if settings.get("command") == "reproduce":
        title = f"The paper's experiments ({settings.get('level')}, seed {settings.get('seed')})"
    known, parts = _known(results, found), list(_parts(results, found, figures))
    folder.write_text("report.md", _markdown(title, known, parts))
    folder.write_text("report.html", _html(title, known, parts))
    return found


def _known(results: Results, found: list[Claim]) -> list[str]:
    """What one must know to read the report: a line for each collector that was run, and for the numbers."""
    run = dict.fromkeys(c for curves in results.curves.values() for c in curves)
    lines = [f"`{name}` {COLLECTED[name]}" for name in run if name in COLLECTED]
    if any(curve.conditional for curve in results.curves[results.experiments[0]].values()):
        lines.append(SAID["mse"])
    return [*lines, SAID["verdicts"]] if found else lines


def _parts(results: Results, found: list[Claim], figures: list[Path]) -> Iterator[tuple[str, list[Block]]]:
    files = {path.stem: path for path in figures if path.suffix == ".png"}
    if found:
        gain = 1 - results.limit("movielens") / results.limit("movielens", "target")
        yield "Claims", [claim_rows(found), SAID["movielens"].format(gain=gain)]
    single = results.experiments
    for heading, caption, names in (
        ("The paper's figures", "paper", ["paper"]),
        ("In the long run", "long", ["long"]),
        ("Where behaviours go", "designs", [f"design-{name}" for name in DESIGNS]),
        ("How fast the regret falls", "regret", ["regret"]),
        ("What safety costs", "price", ["price"]),
        ("Each experiment" if len(single) > 1 else "Campaigns", "each", single),
    ):
        if shown := [files[name] for name in names if name in files]:
            yield heading, [Figures(SAID[caption], shown)]
    yield "Numbers at the end", [words(NUMBERS, ends(results))]
    if guarded := guard_ends(results):
        yield "Guardrails at the end", [SAID["guards"], words(GUARDS, guarded)]
    said = {name: value for name, value in results.folder.manifest().items() if name != "digests"}
    yield "Settings", [Code("json", json.dumps(said, indent=2, sort_keys=True))]
    yield "How to cite", ["The paper:", Code("bibtex", CITATION)]


def _markdown(title: str, known: list[str], parts: Parts) -> str:
    blocks = [f"# {title}", "\n".join(f"- {line}" for line in known)]
    for heading, below in parts:
        blocks += [f"## {heading}", *map(_in_markdown, below)]
    return "\n\n".join(blocks) + "\n"


def markdown_table(rows: Words) -> str:
    """A table, its head first."""
    lines = [rows[0], ("---",) * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _in_markdown(block: Block) -> str:
    match block:
        case Code(language, text):
            return f"```{language}\n{text}\n```"
        case Figures(caption, files):
            return "\n".join([caption, "", *(f"![{path.stem}]({FIGURES}/{path.name})" for path in files)])
        case [*rows]:
            return markdown_table(rows)
    return block


def _html(title: str, known: list[str], parts: Parts) -> str:
    title = html.escape(title)
    body = [f"<h1>{title}</h1><ul>{''.join(f'<li>{_marked(line)}</li>' for line in known)}</ul>"]
    for heading, below in parts:
        body += [f"<h2>{heading}</h2>", *map(_in_html, below)]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{title}</title><style>{STYLE}</style>"
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def _in_html(block: Block) -> str:
    """In tables each cell carries its column's name, which a narrow screen shows in the place of heads."""
    match block:
        case Code(_, text):
            return f"<pre>{html.escape(text)}</pre>"
        case Figures(caption, files):
            return (
                f"<figure>{''.join(map(_image, files))}<figcaption>{_marked(caption)}</figcaption></figure>"
            )
        case [head, *rows]:
            top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
            body = "".join(f"<tr>{''.join(map(_cell, head, row))}</tr>" for row in rows)
            return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f"<p>{_marked(str(block))}</p>"


def _cell(name: str, cell: str) -> str:
    kind = cell.split(maxsplit=1)[0]
    return f'<td class="{kind}" data-name="{html.escape(name)}"><span>{_marked(cell)}</span></td>'


def _image(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{html.escape(path.stem)}" src="data:image/png;base64,{data}">'


def _marked(text: str) -> str:
    """For HTML, with `code` marked and numbers kept with their errors."""
    pieces = html.escape(text, quote=False).replace(" ± ", "&nbsp;±&nbsp;").split("`")
    return "".join(f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces))
