"""The site builds strictly and without the network, loads nothing from elsewhere, and names all."""

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import saver
import saver.safety

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BUILD = """
import socket, sys
def refuse(*arguments, **options):
    raise OSError("the site must build without the network")
socket.socket.connect = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli
cli(["build", "--strict", "--config-file", sys.argv[1], "--site-dir", sys.argv[2]])
"""
LOADED = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=["']?([^"'\s>]+)""")
STYLED = re.compile(r"""(?:@import\s*|url\()["']?([^"')\s]+)""")
ELSEWHERE = re.compile(r"(?:https?:)?//")
SHOWN = re.compile(  # an anchor of another name, the kind of a thing, its name
    r'(?:<a href="" id="([\w.]+)"></a></p>\s*)?<div class="doc doc-object doc-(\w+)">\s*<h\d id="([\w.]+)"'
)
ROOMS = [
    saver.problem, saver.design, saver.estimate, saver.safety, saver.theory, saver.scenarios, saver.data,
    saver.journal,
]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """As `make docs` makes it; the builder sees the staged pages, its configuration and the sources."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    (folder / "src").symlink_to(ROOT / "src")
    run(str(ROOT / "docs" / "stage.py"), str(folder / "build" / "docs"))
    run("-c", BUILD, str(folder / "mkdocs.yml"), str(folder / "site"))
    return folder / "site"


def run(*arguments):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def kind_of(thing):
    """What the reference calls it."""
    if inspect.ismodule(thing):
        return "module"
    if inspect.isclass(thing):
        return "class"
    return "function" if inspect.isfunction(thing) else "attribute"


def test_every_public_name_stands_in_the_reference_as_what_it_is(site):
    shown = {}
    for page in (site / "reference").glob("*.html"):
        for also, kind, name in SHOWN.findall(page.read_text(encoding="utf-8")):
            shown |= {name: kind} | ({also: kind} if also else {})
    public = {f"saver.{name}": getattr(saver, name) for name in saver.__all__}
    exported = list(public.values())
    for room in ROOMS:  # what `saver` itself exports is shown under that name
        things = {name: getattr(room, name) for name in room.__all__}
        public |= {
            f"{room.__name__}.{name}": thing for name, thing in things.items() if thing not in exported
        }
    errors = {name: thing for name, thing in vars(saver.errors).items() if inspect.isclass(thing)}
    public |= {
        f"saver.errors.{name}": error for name, error in errors.items() if issubclass(error, Exception)
    }
    assert len(public) > 60
    assert {name: shown.get(name) for name in public} == {name: kind_of(public[name]) for name in public}


def test_pages_load_nothing_from_elsewhere(site):
    pages, styles = list(site.rglob("*.html")), list(site.rglob("*.css"))
    assert len(pages) > 30
    assert styles
    loaded = [(page.name, url) for page in pages for url in LOADED.findall(page.read_text(encoding="utf-8"))]
    loaded += [(sheet.name, url) for sheet in styles for url in STYLED.findall(sheet.read_text("utf-8"))]
    assert len(loaded) > len(pages)
    assert [found for found in loaded if ELSEWHERE.match(found[1])] == []


def test_what_would_be_loaded_from_elsewhere_is_seen():
    page = '<script src="https://a.b/c.js"></script><link rel=stylesheet href=//fonts.b/x> <a href="https://d.e">'
    assert LOADED.findall(page) == ["https://a.b/c.js", "//fonts.b/x"]
    assert STYLED.findall("@import 'https://a.b/c'; b{src:url(\"//d.e/f\")}") == ["https://a.b/c", "//d.e/f"]


def test_links_as_they_stand_in_the_repository_lead_to_pages_of_the_site(site):
    first = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="promise.html"' in first
    assert 'href="results/numbers.html"' in first
    assert 'src="figures/paper.png"' in first
    assert 'href="../examples/ask_tell.html"' in (site / "guides" / "ask-tell.html").read_text(
        encoding="utf-8"
    )
