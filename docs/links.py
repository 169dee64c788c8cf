"""What the site shows of files outside docs/: the README as its first page, tables, examples.

A file has one text, where people look for it in the repository; links follow it into the site.
MkDocs calls `on_files` once and `on_page_markdown` for every page.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<=\]\()([^()\s#:]+)(?=[#)])")
TOP = {"README.md": "index.md", "LICENSE": "licence.md"}
TOP |= {name: name.lower() for name in ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")}


def outside() -> dict[str, str]:
    """The address in the site of each file outside docs/ that the site shows."""
    tables = {
        f"benchmarks/results/{p.name}": f"results/{p.name}"
        for p in _in("benchmarks/results", "*.md")
    }
    scripts = {f"examples/{p.name}": f"examples/{p.stem}.md" for p in _in("examples", "*.py")}
    return TOP | tables | scripts


def _in(folder: str, pattern: str) -> list[Path]:
    return sorted((ROOT / folder).glob(pattern))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside docs/."""
    for source, address in outside().items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source.endswith(".py"):
            text = f"# {source}\n\n```python\n{text}```\n"
        elif source == "LICENSE":
            text = f"# Licence\n\n```\n{text}```\n"
        files.append(File.generated(config, address, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links as they stand in the repository into links of the site."""
    shown = outside()
    if page.file.src_uri.startswith(("results/", "examples/")):
        page.meta["hide"] = ["toc"]  # wide tables and code
    sources = {address: source for source, address in shown.items()}
    here = page.file.src_uri
    folder = posixpath.dirname(sources.get(here, f"docs/{here}"))

    def follow(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[0]))
        address = shown.get(path) or path.removeprefix("docs/")
        known = files.get_file_from_path(address) is not None
        return posixpath.relpath(address, posixpath.dirname(here) or ".") if known else link[0]

    return LINK.sub(follow, markdown)
