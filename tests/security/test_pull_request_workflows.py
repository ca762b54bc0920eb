"""F1, F3, F7, F10, F11: the workflows that `init` writes, run over pull requests of friends and of attackers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.security.repository import FORK, PASSPHRASE, VARIABLES, Changes, Pull, Repository, make_template
from tests.security.workflow_runner import JobRun, Run

pytestmark = pytest.mark.full

TRIPS = "specs/trips.yaml"
PREVIEW, LIVE = "<!-- deployer:preview -->", "<!-- deployer:preview-live -->"
WORKFLOWS = ".github/workflows"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_template(tmp_path_factory.mktemp("repository"))


@pytest.fixture
def repository(template: Path, tmp_path: Path) -> Repository:
    shutil.copytree(template, tmp_path / "github", symlinks=True)
    return Repository(tmp_path / "github")


def comment(repository: Repository, marker: str = PREVIEW) -> str:
    """The one comment that a workflow posted."""
    (found,) = [
        each["body"]
        for each in json.loads((repository.folder / "comments.json").read_text(encoding="utf-8"))
        if each["body"].startswith(marker) and each["user"]["login"] == "github-actions[bot]"
    ]
    return str(found)


def spec(repository: Repository, *changes: tuple[str, str]) -> str:
    text = (repository.work / TRIPS).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def job_of(runs: dict[str, Run], name: str = "preview") -> JobRun:
    (job,) = runs[name].jobs.values()
    return job


def test_a_pull_request_of_a_fork_gets_one_comment_that_is_updated(repository: Repository) -> None:
    repository.say(7, "stranger", f"{PREVIEW}\nall is well, merge this")
    repository.commit({TRIPS: spec(repository, ("Where it began", "Where it started"))}, "better-words")
    pull = repository.open_pull("better-words", owner=FORK)
    runs = repository.preview(pull)
    assert {name: run.conclusion for name, run in runs.items()} == {
        "preview": "success",
        "comment on preview": "success",
        "preview-live": "skipped",  # a fork gets no credentials
        "comment on preview-live": "success",  # and says nothing
    }, job_of(runs).log
    job = job_of(runs)
    assert (job.permissions, job.environment, job.roles) == ({"contents": "read"}, "", [])
    assert "Where it started" in comment(repository) and "Where it started" in job.summary

    repository.commit({"specs/more.yaml": spec(repository, ("name: trips", "name: journeys"))}, "better-words")
    repository.preview(pull)
    assert len(repository.comments) == 2 and repository.comments[0].endswith("merge this")
    assert "demo.journeys" in comment(repository)


def test_broken_specs_fail_the_job_and_the_comment_says_so(repository: Repository) -> None:
    """F10: a pipe without pipefail hid a failed preview behind a green job. File names are the branch's text too."""
    broken = spec(repository, ("type: int64", "type: strng"), ("name: trips", "name: other"))
    repository.commit({"specs/::error file=x::gone.yaml": broken, "specs/##[error]gone.yaml": broken}, "broken")
    runs = repository.preview(repository.open_pull("broken", owner=FORK))
    assert runs["preview"].conclusion == "failure" and "unknown type" in job_of(runs).log
    assert no_commands(runs)
    assert "The workflow failed" in comment(repository) and "There is no preview" in comment(repository)


def test_a_deleted_table_is_shown_and_its_rule_fails_the_job(repository: Repository) -> None:
    repository.commit({TRIPS: None}, "less")
    runs = repository.preview(repository.open_pull("less", owner=FORK))
    assert shows_deletion(runs, repository)


def shows_deletion(runs: dict[str, Run], repository: Repository) -> bool:
    """Whether the comment says that demo.trips goes, and the mandatory rule of the base fails the job."""
    failed = [step.name for step in job_of(runs).steps if step.failed]
    assert failed == ["Keep the mandatory rules of the base"], job_of(runs).log
    return "destroys" in comment(repository) and "`table/demo.trips`" in comment(repository)


def no_commands(runs: dict[str, Run]) -> bool:
    """Whether the log of no step had a command for the runner."""
    taken = [line for run in runs.values() for job in run.jobs.values() for step in job.steps for line in step.commands]
    assert taken == []
    return True


def hostile(repository: Repository, trace: Path) -> Changes:
    """Everything by which a branch could run code, be judged by itself, or hide that demo.trips is deleted."""
    program, script = f"open({str(trace)!r}, 'a').write(__file__)\n", ("x", f"#!/bin/sh\necho $0 >> {trace}\n")
    words = '"x <!-- </details> -->\\n::error::y\\n##[error]z\\n::stop-commands::a"'
    bare = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tworktree = .\n\tfsmonitor = ./git\n"
    pulumi = (repository.work / "Pulumi.yaml").read_text(encoding="utf-8")
    return {
        TRIPS: None,
        "specs/zz.yaml": spec(repository, ("name: trips", "name: zz"), ("A row is a trip.", words)),
        "policies/rules.yaml": "kind: Policy\nrule: descriptions\nenforcement: advisory\n",
        "policies/own.py": program,
        "stacks/__main__.py": program,
        "Pulumi.yaml": f"{pulumi}plugins: {{providers: [{{name: lake, path: tools}}]}}\n",
        **{f"tools/{name}": script for name in ("pulumi-resource-lake", "deployer", "python")},
        **dict.fromkeys(("git", "gh", "deployer", "python", "python3", "bash", ".venv/bin/deployer"), script),
        **{f"{name}.py": program for name in ("sitecustomize", "usercustomize", "yaml", "pip", "venv", "json")},
        **{f"{name}/__init__.py": program for name in ("pulumi", "lance", "spark_jobs", "rich")},
        "deployer.py": program,
        **{f"requirements{name}.txt": "deployer==0.3.10\n" for name in ("", "-aws", "-build")},
        "vendor/deployer_lake-0.1.0-py3-none-any.whl": b"another",
        "HEAD": "ref: refs/heads/main\n",
        "config": bare,
        "objects/x": "",
        "refs/heads/main": "1" * 40 + "\n",
        ".gitattributes": "* filter=x diff=x\n",
        ".gitmodules": '[submodule "x"]\n\tpath = x\n\turl = ext::sh -c id\n',
        ".env": f"PATH={repository.folder}\n",
        "pip.conf": "[global]\nindex-url = http://127.0.0.1:9\n",
        "base": ("link", "."),
    }


@pytest.mark.parametrize("owner", [FORK, "owner/lake"], ids=["of a fork", "of the repository"])
def test_nothing_of_a_hostile_branch_runs_or_lies(repository: Repository, tmp_path: Path, owner: str) -> None:
    trace = tmp_path / "trace"
    repository.runner.variables = {}  # the lake on AWS is another test's
    repository.commit(hostile(repository, trace), "hostile")
    runs = repository.preview(repository.open_pull("hostile", owner=owner))
    assert not trace.exists(), trace.read_text(encoding="utf-8")
    assert shows_deletion(runs, repository) and no_commands(runs)
    text = comment(repository)
    assert "<!--" not in text.removeprefix(PREVIEW) and text.count("</details>") <= text.count("<details>")
    installed = [line for line in job_of(runs).log.splitlines() if line.startswith("pip: ")]
    assert len(installed) == 2 and all("/workspace/base -m pip" in line for line in installed)


FORGED = f"""\
name: preview
on: pull_request
permissions: {{}}
defaults: {{run: {{shell: bash}}}}
jobs:
  specs:
    runs-on: ubuntu-24.04
    permissions: {{contents: read, pull-requests: write}}
    steps:
      - run: |
          mkdir "$RUNNER_TEMP/preview"
          echo "nothing to do, merge this" > "$RUNNER_TEMP/preview/preview.md"
      - uses: actions/upload-artifact@{"0" * 40}
        with:
          name: preview
          path: ${{{{ runner.temp }}}}/preview/preview.md
"""


@pytest.mark.parametrize("file", ["preview.yaml", "another.yaml", "preview-live.yaml"])
def test_what_a_changed_workflow_says_is_not_shown(repository: Repository, file: str) -> None:
    """F11: the branch chooses what its own workflows say, so their words are never posted as the base's."""
    repository.commit({f"{WORKFLOWS}/{file}": FORGED, TRIPS: None}, "forged")
    runs = repository.preview(repository.open_pull("forged", owner=FORK))
    assert all(each.permissions.get("pull-requests") != "write" for each in runs["preview"].jobs.values())
    assert not any("merge this" in each for each in repository.comments)
    assert "Not shown: this pull request changes `.github`" in comment(repository)


def test_a_branch_that_is_behind_has_changed_no_workflow(repository: Repository) -> None:
    repository.commit({"README.md": "mine\n"}, "behind")
    workflow = (repository.work / WORKFLOWS / "preview.yaml").read_text(encoding="utf-8")
    repository.commit({f"{WORKFLOWS}/preview.yaml": f"# newer\n{workflow}"})
    repository.preview(repository.open_pull("behind", owner=FORK))
    assert "Not shown" not in comment(repository) and "nothing to do" in comment(repository)


def finished(repository: Repository, make: Callable[[Path], object] | None, workflow: str = "preview") -> Run:
    """A run of a workflow that left an artifact of whatever kind."""
    job = JobRun("specs", "success")
    run = Run(99, f"{WORKFLOWS}/{workflow}.yaml", workflow, {}, {"specs": job})
    if make is not None:
        repository.runner.artifacts(99, "preview").mkdir(parents=True)
        make(repository.runner.artifacts(99, "preview") / "preview.md")
    return run


def harmless(repository: Repository, owner: str = FORK) -> tuple[Pull, str]:
    head = repository.commit({"README.md": "mine\n"}, "harmless")
    return repository.open_pull("harmless", owner=owner), head


def test_an_artifact_is_read_as_a_text_of_limited_size(repository: Repository, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the runner", encoding="utf-8")
    pull, head = harmless(repository)
    cases: dict[str, tuple[Callable[[Path], object] | None, str, str]] = {
        "none": (None, "There is no preview", "secret"),
        "a link": (lambda path: path.symlink_to(secret), "There is no preview", "of the runner"),
        "a folder": (lambda path: path.mkdir(), "There is no preview", "Error"),
        "hidden": (lambda path: path.write_bytes(b"a\x1b[2J\0\xe2\x80\xaeb\xff"), "a\ufffd[2J\ufffd\ufffdb", "\x1b"),
        "too long": (lambda path: path.write_text("é" * 200_000 + "\n"), "Too long for a comment", "Error"),
        "a marker": (lambda path: path.write_text(f"{LIVE}\n# hm"), LIVE, "Error"),
    }  # fmt: skip
    for name, (make, wanted, unwanted) in cases.items():
        runs = repository.follow(finished(repository, make), pull, head)
        assert runs["comment on preview"].conclusion == "success", name
        assert wanted in comment(repository) and unwanted not in comment(repository), name
        assert comment(repository).startswith(f"{PREVIEW}\n### ") and len(repository.comments) == 1, name
        shutil.rmtree(repository.runner.artifacts(99, "preview"), ignore_errors=True)


@pytest.mark.parametrize(
    ("forged", "workflow"),
    [
        ({"head_sha": "0" * 40}, "preview"),
        ({"head_branch": "main"}, "preview"),
        ({"head_repository": {"full_name": "owner/lake"}}, "preview"),
        ({"head_repository": None}, "preview"),
        ({"event": "push"}, "preview"),
        ({"conclusion": "cancelled"}, "preview"),
        ({"path": f"{WORKFLOWS}/evil.yaml"}, "preview"),
        ({}, "preview-live"),
    ],
    ids=[
        "another commit", "another branch", "another owner", "a fork that is gone", "a push", "cancelled",
        "another file of the same name", "a lake's preview of a fork",
    ],
)  # fmt: skip
def test_only_the_newest_commit_of_an_open_pull_request_is_commented(
    repository: Repository, forged: dict[str, object], workflow: str
) -> None:
    pull, head = harmless(repository)
    run = finished(repository, lambda path: path.write_text("words"), workflow)
    runs = repository.follow(run, pull, head, **forged)
    assert repository.comments == [] and {each.conclusion for each in runs.values()} <= {"success", "skipped"}


def test_a_run_that_ends_late_says_nothing_of_the_commits_after_it(repository: Repository) -> None:
    pull, head = harmless(repository)
    run = finished(repository, lambda path: path.write_text("all is well"))
    repository.commit({TRIPS: None}, "harmless")
    repository.preview(pull)
    before = repository.comments
    repository.follow(run, pull, head)
    assert repository.comments == before and "destroys" in comment(repository)


def test_a_preview_of_the_lake_has_no_secret_and_only_reads(repository: Repository, tmp_path: Path) -> None:
    """F7, F11: the branch's program runs, so what it says is shown as the branch's own, beside what the specs say."""
    seen = tmp_path / "seen"
    program = (repository.work / "stacks" / "__main__.py").read_text(encoding="utf-8")
    spying = f"import json, os\nopen({str(seen)!r}, 'w').write(json.dumps(dict(os.environ)))\n"
    repository.commit({"stacks/__main__.py": program + spying, TRIPS: None}, "branch")
    runs = repository.preview(repository.open_pull("branch"))
    live = job_of(runs, "preview-live")
    assert live.result == "success", live.log
    assert (live.environment, live.roles) == ("preview", [VARIABLES["AWS_PREVIEW_ROLE"]])
    assert live.permissions == {"contents": "read", "id-token": "write"}
    known = seen.read_text(encoding="utf-8")
    assert PASSPHRASE not in known and not {"GH_TOKEN", "GITHUB_TOKEN"} & json.loads(known).keys()
    assert "as honest as the branch is" in comment(repository, LIVE) and "demo" in comment(repository, LIVE)
    assert shows_deletion(runs, repository)
    for run in runs.values():
        for job in run.jobs.values():
            assert not any(PASSPHRASE in step.environment.values() for step in job.steps)
            if job.permissions.get("pull-requests") == "write":
                assert run.name == "comment"
