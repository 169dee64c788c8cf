"""The report of a folder: figures, claims, settings, how to cite; Markdown and self-contained HTML."""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from saver.experiments import claims as claiming
from saver.experiments.catalogue import DESIGNS, EXPERIMENTS
from saver.experiments.claims import Claim
from saver.experiments.results import Results
from saver.experiments.words import (
    CAPTIONS,
    CITATION,
    COLLECTED,
    GUARDED,
    MOVIELENS,
    MSE,
    STYLE,
    VERDICTS,
)

Table = list[tuple[str, ...]]
NUMBERS = (
    "experiment", "collector", "runs", "K * MSE", "over the safe limit", "plain / conditional MSE",
    "baseline", "ever below 0",
)  # fmt: skip
GUARDS = (
    "experiment", "collector", "guardrail", "baseline", "an episode", "budget", "believed", "ever below 0",
)  # fmt: skip
ENOUGH = 30  # runs for a plain mean squared error to mean something
CLAIMS = ("whose", "claim", "measured", "number", "verdict")


def write_report(results: Results, figures: list[Path]) -> list[Claim]:
    """Write claims.csv (where all experiments are there), report.md and report.html; return the claims."""
    folder = results.folder
    found = claiming.claims(results) if set(EXPERIMENTS) <= set(results.experiments) else []
    if found:
        folder.write("claims", (claim.row() for claim in found))
    pictures = {path.stem: path for path in figures if path.suffix == ".png"}
    folder.write_text("report.md", _markdown(results, found, pictures))
    folder.write_text("report.html", _html(results, found, pictures))
    return found


def claim_rows(found: Iterable[Claim]) -> Table:
    """The claims in words."""
    return [(c.who, c.claim, c.measured, f"{c.value:.4g} ± {c.error:.2g}", c.verdict) for c in found]


def ends(results: Results) -> list[dict[str, Any]]:
    """The end of every curve, as numbers."""
    found = []
    for experiment in results.experiments:
        for collector in results.collectors(experiment):
            curve = results.curve(experiment, collector)
            last, K = curve.last(), curve.end("episodes")
            limit = results.limit(results.scenario(experiment))
            row = {
                "experiment": experiment,
                "collector": collector,
                "episodes": int(K),
                "runs": int(curve.end("runs")),
                "k_mse": K * last.value,
                "k_mse_se": K * last.error,
                "over_limit": K * last.value / limit if limit > 0 else math.nan,
                "plain": curve.end("mse") / last.value if curve.conditional and last.value > 0 else math.nan,
                "plain_se": curve.end("mse_se") / last.value if last.value > 0 else math.nan,
                "baseline_share": curve.end("baseline_share"),
                "violation_rate": curve.end("violation_rate"),
            }
            found.append(row)
    return found


def number_rows(numbers: list[dict[str, Any]]) -> Table:
    """The same in words; too few runs say nothing about the plain error."""
    return [
        (
            row["experiment"],
            row["collector"],
            f"{row['runs']}",
            f"{row['k_mse']:.4g} ± {row['k_mse_se']:.1g}",
            _number(row["over_limit"], ".4g"),
            f"{row['plain']:.3f} ± {row['plain_se']:.2g}" if _many(row) else "-",
            f"{row['baseline_share']:.1%}",
            f"{row['violation_rate']:.2%}",
        )
        for row in numbers
    ]


def guard_ends(results: Results) -> list[dict[str, Any]]:
    """What is left of each of several guardrails at the end, as numbers."""
    names = ["experiment", "collector", "guardrail", "cost", "baseline_value", "required"]
    names += ["budget", "budget_se", "believed", "violation_rate"]
    found = []
    for experiment in results.experiments:
        guarded = results.guards(experiment)
        for collector in results.collectors(experiment) if guarded else ():
            ends_of = [by_collector[collector].rows[-1] for by_collector in guarded.values()]
            found += [{name: row[name] for name in names} for row in ends_of]
    return found


def guard_rows(numbers: list[dict[str, Any]]) -> Table:
    """The same in words."""
    return [
        (
            row["experiment"],
            row["collector"],
            row["guardrail"],
            f"{row['baseline_value']:.4g}",
            f"at {'most' if row['cost'] else 'least'} {row['required']:.4g}",
            f"{row['budget']:.4g} ± {row['budget_se']:.2g}",
            f"{row['believed']:.4g}",
            f"{row['violation_rate']:.2%}",
        )
        for row in numbers
    ]


def _many(row: dict[str, Any]) -> bool:
    return row["runs"] >= ENOUGH and not math.isnan(row["plain"])


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)


def _sections(results: Results, pictures: dict[str, Path]) -> list[tuple[str, str, list[str]]]:
    """(title, text, figures) of each part of the report that has any."""
    single = results.experiments
    parts = [
        ("The paper's figures", CAPTIONS["paper"], ["paper"]),
        ("In the long run", CAPTIONS["long"], ["long"]),
        ("Where behaviours go", CAPTIONS["designs"], [f"design-{name}" for name in DESIGNS]),
        ("How fast the regret falls", CAPTIONS["regret"], ["regret"]),
        ("What safety costs", CAPTIONS["price"], ["price"]),
        ("Each experiment" if len(results.experiments) > 1 else "Campaigns", CAPTIONS["each"], single),
    ]
    kept = [(title, text, [name for name in names if name in pictures]) for title, text, names in parts]
    return [part for part in kept if part[2]]


def _how(results: Results, found: list[Claim]) -> list[str]:
    """What one must know to read the report: a line for each collector that was run, and for the numbers."""
    run = dict.fromkeys(c for experiment in results.experiments for c in results.collectors(experiment))
    lines = [COLLECTED[name] for name in run if name in COLLECTED]
    first = results.experiments[0]
    if any(results.curve(first, name).conditional for name in results.collectors(first)):
        lines.append(MSE)
    return [*lines, VERDICTS] if found else lines


def _remark(results: Results) -> str:
    """What is seen on MovieLens."""
    return MOVIELENS.format(gain=1 - results.limit("movielens") / results.limit("movielens", "target"))


def _markdown(results: Results, found: list[Claim], pictures: dict[str, Path]) -> str:
    lines = [f"# {_title(results)}", "", *(f"- {line}" for line in _how(results, found)), ""]
    if found:
        lines += ["## Claims", "", *_markdown_table(CLAIMS, claim_rows(found)), "", _remark(results), ""]
    for title, text, names in _sections(results, pictures):
        lines += [f"## {title}", "", text, "", *[f"![{name}](figures/{name}.png)" for name in names], ""]
    lines += ["## Numbers at the end", "", *_markdown_table(NUMBERS, number_rows(ends(results))), ""]
    if guarded := guard_ends(results):
        lines += ["## Guardrails at the end", "", GUARDED, ""]
        lines += [*_markdown_table(GUARDS, guard_rows(guarded)), ""]
    lines += ["## Settings", "", "```json", _settings(results), "```", ""]
    lines += ["## How to cite", "", "The paper:", "", "```bibtex", CITATION, "```", ""]
    return "\n".join(lines)


def _markdown_table(head: tuple[str, ...], rows: Table) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]


def _html(results: Results, found: list[Claim], pictures: dict[str, Path]) -> str:
    title = html.escape(_title(results))
    points = "".join(f"<li>{_marked(line)}</li>" for line in _how(results, found))
    body = [f"<h1>{title}</h1><ul>{points}</ul>"]
    if found:
        body.append(
            f"<h2>Claims</h2>{_html_table(CLAIMS, claim_rows(found))}<p>{_marked(_remark(results))}</p>"
        )
    for heading, text, names in _sections(results, pictures):
        shown = "".join(_image(name, pictures[name]) for name in names)
        body.append(f"<h2>{heading}</h2><figure>{shown}<figcaption>{_marked(text)}</figcaption></figure>")
    body.append(f"<h2>Numbers at the end</h2>{_html_table(NUMBERS, number_rows(ends(results)))}")
    if guarded := guard_ends(results):
        table = _html_table(GUARDS, guard_rows(guarded))
        body.append(f"<h2>Guardrails at the end</h2><p>{_marked(GUARDED)}</p>{table}")
    body.append(f"<h2>Settings</h2><pre>{html.escape(_settings(results))}</pre>")
    body.append(f"<h2>How to cite</h2><p>The paper:</p><pre>{html.escape(CITATION)}</pre>")
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{title}</title><style>{STYLE}</style>"
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def _html_table(head: tuple[str, ...], rows: Table) -> str:
    """A table; each cell carries its column's name, which a narrow screen shows in the place of heads."""
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(map(_html_cell, head, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _html_cell(name: str, cell: str) -> str:
    kind = cell.split(maxsplit=1)[0]
    return f'<td class="{kind}" data-name="{html.escape(name)}"><span>{_marked(cell)}</span></td>'


def _image(name: str, path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{html.escape(name)}" src="data:image/png;base64,{data}">'


def _marked(text: str) -> str:
    """For HTML, with `code` marked and numbers kept with their errors."""
    pieces = html.escape(text, quote=False).replace(" ± ", "&nbsp;±&nbsp;").split("`")
    return "".join(f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces))


def _settings(results: Results) -> str:
    said = {name: value for name, value in results.folder.manifest().items() if name != "digests"}
    return json.dumps(said, indent=2, sort_keys=True)


def _title(results: Results) -> str:
    settings = results.folder.manifest()["settings"]
    if settings.get("command") == "reproduce":
        return f"The paper's experiments ({settings.get('level')}, seed {settings.get('seed')})"
    return f"{', '.join(results.experiments)} (seed {settings.get('seed')})"
