"""Write the pages of the site into one new folder, from which any builder can make it.

The site also shows files outside docs/: the README as its first page, tables, examples, the
licence. A file has one text, where people look for it in the repository; links follow it.

    python docs/stage.py build/docs
"""

import posixpath
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<=\]\()([^()\s#:]+)(?=[#)])")
TOP = {"README.md": "index.md", "LICENSE": "licence.md"}
TOP |= {name: name.lower() for name in ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")}
WIDE = "---\nhide:\n  - toc\n---\n\n"  # tables and code need the width of the contents
SHOWN = (".md", ".css", ".png")  # of what docs/ holds


def addresses() -> dict[str, str]:
    """Where each file of the repository that the site shows stands in the site."""
    files = (ROOT / "docs").rglob("*")
    pages = [path.relative_to(ROOT).as_posix() for path in files if path.suffix in SHOWN]
    tables = (ROOT / "benchmarks" / "results").glob("*.md")
    scripts = (ROOT / "examples").glob("*.py")
    return (
        TOP
        | {page: page.removeprefix("docs/") for page in pages}
        | {f"benchmarks/results/{path.name}": f"results/{path.name}" for path in tables}
        | {f"examples/{path.name}": f"examples/{path.stem}.md" for path in scripts}
    )


def page(source: str, text: str, shown: dict[str, str]) -> str:
    """The text of a file as a page of the site, its links leading to pages of the site."""
    if source.endswith(".py"):
        text = f"# {source}\n\n```python\n{text}```\n"
    elif source == "LICENSE":
        text = f"# Licence\n\n```\n{text}```\n"

    def follow(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[0]))
        here = posixpath.dirname(shown[source]) or "."
        return posixpath.relpath(shown[path], here) if path in shown else link[0]

    wide = shown[source].startswith(("results/", "examples/"))
    return WIDE * wide + LINK.sub(follow, text)


def stage(folder: Path) -> None:
    """Write all pages, and what they show, into a folder that is not there yet."""
    folder.mkdir(parents=True)
    shown = addresses()
    for source, address in shown.items():
        (folder / address).parent.mkdir(parents=True, exist_ok=True)
        if address.endswith(".md"):
            text = page(source, (ROOT / source).read_text(encoding="utf-8"), shown)
            (folder / address).write_text(text, encoding="utf-8")
        else:
            shutil.copyfile(ROOT / source, folder / address)


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
