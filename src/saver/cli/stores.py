"""The commands about campaigns in a store."""

from __future__ import annotations

import datetime
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from saver.cli import show
from saver.cli.options import Json, check_picture
from saver.errors import InvalidData, StoreFailed

if TYPE_CHECKING:
    from saver.journal import DurableCampaign

app = typer.Typer(no_args_is_help=True, help="Campaigns in a store: what they are, what happened, backups.")
Url = Annotated[str, Argument(metavar="URL", help="a SQLite file, or postgresql://user@host/database")]
Parquet = Annotated[Path, Option(help="a Parquet file, one row for each step")]
Which = Annotated[str | None, Argument(metavar="[NAME]", help="of the campaign, if there are several")]


@app.command("list")
def listed(url: Url, json: Json = False) -> None:
    """Name the campaigns of a store."""
    from saver.journal import connect

    rows: list[dict[str, Any]] = []
    with closing(connect(url)) as journal:
        for header in journal.campaigns():
            with _opened(url, header.name) as campaign:
                rows.append({"name": header.name, "made": _time(header.created), **_counted(campaign)})
    head = ("name", "made", "episodes", "told", "baseline", "out", "abandoned", "cancelled", "records")
    show.result(json, rows, rows=[head, *([_said(row[name]) for name in head] for row in rows)])


@app.command("show")
def shown(
    url: Url,
    name: Which = None,
    plot: Annotated[Path | None, Option(help="draw the campaign so far to a .png, .pdf or .svg")] = None,
    json: Json = False,
) -> None:
    """Say how a campaign stands: what was told, what is certified, what is known of the target."""
    if plot is not None:
        check_picture(plot, "--plot")
    with _opened(url, name) as campaign:
        facts = {"name": campaign.name, **_counted(campaign), **_answers(campaign)}
        lines = [] if campaign.done else str(campaign.why()).splitlines()
        if plot is not None:
            facts["plot"] = str(campaign.plot(plot))
    rows = [("", ""), *((key, _said(value)) for key, value in facts.items())]
    show.result(json, facts | {"next": lines}, *lines, rows=rows)


@app.command()
def events(
    url: Url,
    name: Which = None,
    after: Annotated[int, Option(min=0, help="only records after this one")] = 0,
    most: Annotated[int, Option(min=1, help="at most so many")] = 100,
    json: Json = False,
) -> None:
    """Print what happened, in order."""
    with _opened(url, name) as campaign:
        found = campaign.records(after, most)
    data, rows = [], [("record", "kind", "trial", "key", "at", "by", "seal")]
    for one in found:
        seal, when = one.chain.hex(), _time(one.at)
        said = dict(zip(type(one).__annotations__, one, strict=True))
        data.append(said | {"body": one.told, "chain": seal})
        rows.append((str(one.seq), one.kind, _said(one.trial), one.key or "", when, one.actor, seal[:12]))
    show.result(json, data, rows=rows)


@app.command()
def verify(url: Url, name: Which = None, json: Json = False) -> None:
    """Read a campaign anew from its first record and compare it with all that is kept of it."""
    with _opened(url, name) as campaign:
        found, called = campaign.verify(), campaign.name
    kept = f"{found.records:,} records and {found.snapshots} snapshots"
    lines = f"{called}: {kept} belong together", f"seal: {found.chain}"
    show.result(json, {"name": called, **vars(found)}, *lines)


@app.command()
def export(url: Url, name: Which = None, out: Parquet = Path("campaign.parquet"), json: Json = False) -> None:
    """Write the told episodes, with propensities and kinds, for other tools."""
    if out.suffix != ".parquet":
        raise InvalidData(f"--out is {out}; it must end in .parquet, which is what is written")
    from saver.data import from_campaign

    with _opened(url, name) as campaign:
        found = from_campaign(campaign)
    found.to_parquet(out)
    data = {"episodes": len(found), "steps": found.rows, "file": str(out)}
    show.result(json, data, f"{out}: {len(found):,} episodes, {found.rows:,} steps")


@app.command()
def snapshot(url: Url, name: Which = None, json: Json = False) -> None:
    """Keep the state as it is now, so that the campaign opens sooner."""
    with _opened(url, name, "embedded") as campaign:
        place, called = campaign.snapshot(), campaign.name
    show.result(json, {"name": called, "after": place}, f"{called}: kept after record {place:,}")


@app.command("backup")
def back_up(url: Url, out: Annotated[Path, Argument(help="a new SQLite file")], json: Json = False) -> None:
    """Write all campaigns of a store to one file; they may go on meanwhile."""
    from saver.journal import backup

    _copied(backup(url, out), str(out), json)


@app.command("restore")
def restored(
    backup: Annotated[Path, Argument(help="a file that `saver campaign backup` wrote")],
    url: Url,
    json: Json = False,
) -> None:
    """Bring the campaigns of a backup into a store."""
    from saver.journal import restore
    from saver.journal.postgres import masked

    _copied(restore(backup, url), masked(url), json)


def _copied(made: list[Any], where: str, json: bool) -> None:
    names = [header.name for header in made]
    show.result(json, {"campaigns": names, "to": where}, f"{where}: {', '.join(names) or 'no campaigns'}")


def _opened(url: str, name: str | None, mode: str = "read") -> DurableCampaign:
    """A campaign, the only one if none is named; to look at, also while a leader holds it."""
    import saver
    from saver.journal import connect

    if name is None:
        with closing(connect(url)) as journal:
            known = [header.name for header in journal.campaigns()]
        if len(known) != 1:
            raise StoreFailed(
                f"{journal.name} has {len(known)} campaigns ({', '.join(known) or 'none'}); say which"
            )
        name = known[0]
    return saver.open(url, name, mode=mode)


def _counted(campaign: DurableCampaign) -> dict[str, Any]:
    kinds = campaign.budget
    return {
        "episodes": campaign.episodes,
        "told": kinds.episodes,
        "baseline": kinds.baseline_episodes,
        "out": len(campaign.outstanding),
        **campaign.given_up,
        "records": campaign.last,
    }


def _answers(campaign: DurableCampaign) -> dict[str, Any]:
    found: dict[str, Any] = {"ended": campaign.ended or "no"}
    if not campaign.counts.any():
        return found
    for rail, certified in campaign.budget.of.items():
        found[f"certified budget, {rail}"] = certified
    for target in campaign.problem.targets:
        estimate = campaign.estimate(target)
        found[target] = estimate.value
        found[f"{target}, 95 % interval"] = list(estimate.interval)
    return found


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="seconds")


def _said(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(map(_said, value))
    form = "," if isinstance(value, int) else ".4g" if isinstance(value, float) else ""
    return "" if value is None else format(value, form)
