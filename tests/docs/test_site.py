"""The site that `make docs` builds: it has a home page, and every table of a page is shown as one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(file.stem for file in (REPOSITORY / "docs").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    return folder


def html(site: Path, page: str) -> str:
    return (site / ("index.html" if page == "index" else f"{page}/index.html")).read_text(encoding="utf-8")


def test_the_home_page_leads_to_every_page(site: Path) -> None:
    _, _, body = html(site, "index").partition("<article")
    linked = set(re.findall(r'href="([\w-]+)/"', body.partition("</article>")[0]))
    assert linked == {*PAGES} - {"index"}


def test_every_page_is_in_the_navigation() -> None:
    nav = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    entries = [entry for part in nav for pages in part.values() for entry in pages]
    files = [entry if isinstance(entry, str) else next(iter(entry.values())) for entry in entries]
    assert sorted(files) == [f"{page}.md" for page in PAGES]


def test_a_page_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in PAGES:
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:)?//', html(site, page))
        assert not loaded, page


@pytest.mark.parametrize("page", PAGES)
def test_no_row_is_torn_off_its_table(site: Path, page: str) -> None:
    code = re.sub(r"<pre.*?</pre>", "", html(site, page), flags=re.DOTALL)
    assert re.findall(r"<p>\s*\|.*", code) == []


def test_the_targets_of_metasync_are_one_table(site: Path) -> None:
    tables = re.findall(r"<table>.*?</table>", html(site, "services"), re.DOTALL)
    [targets] = [table for table in tables if "Glue Data Catalog" in table]
    assert re.findall(r"<tr>\s*<td><code>(\w+)</code>", targets) == ["glue", "directory", "rest", "plugin"]
