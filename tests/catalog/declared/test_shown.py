"""Datasets in the report and in the graph, each name escaped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.declared.conftest import DRIVES, INDEX, Deployer, datasets, declare, record_drive


def test_the_report_has_datasets(project: Path, deployer: Deployer) -> None:
    declare(project, DRIVES + INDEX + "description: Of <b>the</b> fleet.\n")
    size = record_drive(project, "one").stat().st_size
    assert deployer("up", "--yes").code == 0
    record_drive(project, "two")
    with datasets() as found:
        found.create("<script>")
    assert deployer("report", "--html", "report.html").code == 0
    page = (project / "report.html").read_text(encoding="utf-8")
    card = page.partition('id="datasets"')[2].partition("</section>")[0]
    assert "<td>drives<br>" in card
    assert "Of &lt;b&gt;the&lt;/b&gt; fleet." in card
    assert "recordings (layer base)" in card
    assert "1 new recording" in card
    assert "/log:TextLog:text (text by tick)" in card
    assert "clients of the catalog" in card
    assert "<script>" not in card
    assert "&lt;script&gt;" in card
    assert str(size)[0] in card


def test_the_report_of_a_lake_without_datasets_does_not_name_them(project: Path, deployer: Deployer) -> None:
    (project / "specs/drives.yaml").unlink()
    assert deployer("up", "--yes").code == 0
    assert deployer("report", "--html", "report.html").code == 0
    assert 'id="datasets"' not in (project / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("form", "shown"), [("mermaid", "dataset/drives"), ("svg", 'class="dataset"')])
def test_the_graph_has_datasets(project: Path, deployer: Deployer, form: str, shown: str) -> None:
    drawn = deployer("graph", "--format", form)
    assert drawn.code == 0
    assert shown in drawn.out


def test_render_and_validate_have_datasets(project: Path, deployer: Deployer) -> None:
    assert "kind: Dataset" in deployer("render").out
    assert deployer("render", "--json").json["datasets"] == [{"name": "drives", "sources": [{"prefix": "recordings"}]}]
    assert deployer("validate", "--json").json["datasets"] == ["drives"]
    assert "0 tables and 1 dataset in 2 files" in deployer("validate").out


def test_a_comparison_with_a_commit_has_datasets(project: Path, deployer: Deployer, git_commit: str) -> None:
    declare(project, DRIVES + "retention: 7d\n")
    compared = deployer("preview", "--against", git_commit)
    assert compared.code == 0
    assert "replaced versions kept until removed → 7d" in compared.out


@pytest.fixture
def git_commit(project: Path) -> str:
    """Commits the project; returns the ref."""
    import subprocess

    identity = ["-c", "user.name=tester", "-c", "user.email=tester@example.com"]
    for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "specs"]):
        subprocess.run(["git", "-C", str(project), *arguments], check=True)
    return "HEAD"
