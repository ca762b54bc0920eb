"""The site that `make docs` builds: it has a home page, and every table of a page is shown as one."""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
PAGES = sorted(file.relative_to(DOCS).with_suffix("").as_posix() for file in DOCS.rglob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    return folder


def files_of(nav: object) -> Iterator[str]:
    """Yields the pages of a part of the navigation, whatever its depth."""
    match nav:
        case str():
            yield nav
        case list():
            for entry in nav:
                yield from files_of(entry)
        case dict():
            for entry in nav.values():
                yield from files_of(entry)


def html(site: Path, page: str) -> str:
    return (site / ("index.html" if page == "index" else f"{page}/index.html")).read_text(encoding="utf-8")


def test_the_home_page_leads_to_every_page(site: Path) -> None:
    _, _, body = html(site, "index").partition("<article")
    linked = set(re.findall(r'href="([\w-]+)/"', body.partition("</article>")[0]))
    assert linked == {page for page in PAGES if "/" not in page} - {"index"}


@pytest.mark.parametrize(("overview", "folder"), [("cli", "commands"), ("spec", "spec"), ("python", "python")])
def test_the_overview_of_a_reference_leads_to_its_pages(site: Path, overview: str, folder: str) -> None:
    _, _, body = html(site, overview).partition("<article")
    linked = re.findall(r'href="([\w./-]+)/', body.partition("</article>")[0])
    wanted = {page for page in PAGES if page.startswith(f"{folder}/")}
    assert wanted <= {posixpath.normpath(f"{overview}/{page}") for page in linked}


def test_every_page_is_in_the_navigation() -> None:
    nav = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert sorted(files_of(nav)) == sorted(f"{page}.md" for page in PAGES)


def test_a_page_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in PAGES:
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:)?//', html(site, page))
        assert not loaded, page


@pytest.mark.parametrize("page", PAGES)
def test_no_row_is_torn_off_its_table(site: Path, page: str) -> None:
    code = re.sub(r"<pre.*?</pre>", "", html(site, page), flags=re.DOTALL)
    assert re.findall(r"<p>\s*\|.*", code) == []


def test_the_targets_of_metasync_are_one_table(site: Path) -> None:
    tables = re.findall(r"<table>.*?</table>", html(site, "metasync"), re.DOTALL)
    [targets] = [table for table in tables if "Glue Data Catalog" in table]
    assert re.findall(r"<tr>\s*<td><code>(\w+)</code>", targets) == ["glue", "directory", "rest", "plugin"]
