"""A repository as GitHub keeps it, with the project that `deployer init` writes: branches, pull requests and pushes.

What GitHub does at each of these is done here: it merges a pull request with its base, runs the workflows of the merge,
and those of the default branch that follow on them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from deployer.app.starter.write import write_project
from tests.security.workflow_runner import GIT, Run, Runner

OWNER, FORK = "owner/lake", "stranger/lake"
PASSPHRASE = "the passphrase of production"
VARIABLES = {
    "AWS_REGION": "eu-central-1",
    "AWS_PREVIEW_ROLE": "arn:aws:iam::123456789012:role/preview",
    "AWS_DEPLOY_ROLE": "arn:aws:iam::123456789012:role/deploy",
}
#: Of a file in a commit: its text or bytes, None to delete it, and ("x", text) for a script, ("link", target).
Changes = Mapping[str, str | bytes | tuple[str, str] | None]


@dataclass
class Pull:
    """An open pull request."""

    number: int
    branch: str
    owner: str

    @property
    def is_fork(self) -> bool:
        return self.owner != OWNER


def make_template(folder: Path) -> Path:
    """A repository of a new project, to copy for each test."""
    write_project(folder / "work", "demo")
    _git(folder, "init", "-q", "--bare", "-b", "main", "origin.git")
    _git(folder / "origin.git", "config", "uploadpack.allowAnySHA1InWant", "true")
    _git(folder / "work", "init", "-q", "-b", "main")
    _git(folder / "work", "add", "--all", "--force")
    _git(folder / "work", "commit", "-q", "-m", "Begin")
    _git(folder / "work", "push", "-q", "../origin.git", "main")
    for name in ("pulls", "comments"):
        (folder / f"{name}.json").write_text("[]", encoding="utf-8")
    return folder


@dataclass
class Repository:
    """`folder` is a copy of the template. `extra` are environment variables of every script of workflows."""

    folder: Path
    extra: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.runner = Runner(
            self.folder, VARIABLES, {"production": {"PULUMI_CONFIG_PASSPHRASE": PASSPHRASE}}, self.extra
        )

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def comments(self) -> list[str]:
        return [each["body"] for each in self._read("comments")]

    def say(self, number: int, login: str, body: str) -> None:
        """Somebody comments on a pull request."""
        comments = self._read("comments")
        comments.append({"id": len(comments) + 1, "issue": number, "user": {"login": login}, "body": body})
        self._write("comments", comments)

    def commit(self, changes: Changes, branch: str = "main", start: str = "main") -> str:
        """Commits to a branch, which begins at `start` when it is new. Returns the commit."""
        known = _git(self.work, "branch", "--list", branch).strip()
        _git(self.work, "checkout", "-q", *([branch] if known else ["-b", branch, start]))
        for name, content in changes.items():
            _put(self.work / name, content)
        _git(self.work, "add", "--all", "--force")
        _git(self.work, "commit", "-q", "--allow-empty", "-m", "Tidy")
        return _git(self.work, "rev-parse", "HEAD").strip()

    def open_pull(self, branch: str, number: int = 7, owner: str = OWNER) -> Pull:
        pull = Pull(number, branch, owner)
        self._update(pull)
        return pull

    def preview(self, pull: Pull) -> dict[str, Run]:
        """What happens when commits are pushed to a pull request. Returns the runs by their workflows' names."""
        merge = self._update(pull)
        head = _git(self.work, "rev-parse", pull.branch).strip()
        about = next(each for each in self._read("pulls") if each["number"] == pull.number)
        event = {"number": pull.number, "pull_request": about, "repository": {"default_branch": "main"}}
        runs: dict[str, Run] = {}
        for path, text in self.workflows(merge).items():
            if "pull_request" in _triggers(text):
                run = self.runner.run(path, text, "pull_request", event, merge, write=not pull.is_fork)
                runs[run.name if run.name not in runs else path] = run
                runs |= self.follow(run, pull, head)
        return runs

    def follow(self, run: Run, pull: Pull, head: str, **forged: Any) -> dict[str, Run]:
        """The workflows of the default branch that begin when a run has ended. `forged` are fields of the event."""
        main = _git(self.work, "rev-parse", "main").strip()
        found = {}
        for path, text in self.workflows(main).items():
            if run.name in _triggers(text).get("workflow_run", {}).get("workflows", ()):
                about = {
                    "id": run.id, "workflow_id": 1, "name": run.name, "path": run.path, "event": "pull_request",
                    "conclusion": run.conclusion, "head_branch": pull.branch, "head_sha": head,
                    "head_repository": {"full_name": pull.owner}, "html_url": f"https://github.com/{OWNER}/runs/{run.id}",
                    **forged,
                }  # fmt: skip
                event = {"workflow_run": about, "repository": {"default_branch": "main"}}
                followed = self.runner.run(path, text, "workflow_run", event, main)
                found[f"{followed.name} on {run.name}"] = followed
        return found

    def push(self, **options: str) -> Run:
        """Pushes main and runs its workflow `deploy`; `stop_after` a job, for its approval."""
        commit, text = self._push_main()
        event = {"ref": "refs/heads/main", "repository": {"default_branch": "main"}}
        return self.runner.run(DEPLOY, text, "push", event, commit, **options)  # type: ignore[arg-type]

    def dispatch(self, ref: str = "refs/heads/main", **inputs: str) -> Run:
        """Runs the workflow `deploy` by hand."""
        commit, text = self._push_main()
        return self.runner.run(DEPLOY, text, "workflow_dispatch", {"ref": ref, "inputs": inputs}, commit)

    def approve(self, run: Run) -> None:
        """Lets a run go on that waits for its approval."""
        commit, text = self._push_main()
        self.runner.resume(run, text, "push", commit)

    def workflows(self, commit: str) -> dict[str, str]:
        """The files in .github/workflows at a commit, by path."""
        names = _git(self.work, "ls-tree", "-r", "--name-only", commit, "--", ".github/workflows/").split()
        return {name: _git(self.work, "show", f"{commit}:{name}") for name in names}

    def _update(self, pull: Pull) -> str:
        """Pushes the branch, and the merge that GitHub makes of it. Returns the merge."""
        _git(self.work, "checkout", "-q", "--force", "--detach", "main")
        _git(self.work, "merge", "-q", "--no-ff", "-m", "Merge", pull.branch)
        merge, head = (_git(self.work, "rev-parse", each).strip() for each in ("HEAD", pull.branch))
        refs = (f"{head}:refs/pull/{pull.number}/head", f"{merge}:refs/pull/{pull.number}/merge")
        _git(self.work, "push", "-q", "--force", "../origin.git", "main", *refs)
        about = {
            "number": pull.number,
            "state": "open",
            "base": {"ref": "main", "sha": _git(self.work, "rev-parse", "main").strip()},
            "head": {
                "ref": pull.branch,
                "label": f"{pull.owner.partition('/')[0]}:{pull.branch}",
                "sha": head,
                "repo": {"full_name": pull.owner},
            },
        }
        others = [each for each in self._read("pulls") if each["number"] != pull.number]
        self._write("pulls", [*others, about])
        return merge

    def _push_main(self) -> tuple[str, str]:
        _git(self.work, "push", "-q", "../origin.git", "main")
        commit = _git(self.work, "rev-parse", "main").strip()
        return commit, self.workflows(commit)[DEPLOY]

    def _read(self, name: str) -> list[Any]:
        found: list[Any] = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        return found

    def _write(self, name: str, value: list[Any]) -> None:
        (self.folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")


DEPLOY = ".github/workflows/deploy.yaml"


def _triggers(text: str) -> dict[str, Any]:
    found = yaml.safe_load(text)[True]  # `on`, as YAML 1.1 has it
    return found if isinstance(found, dict) else {found: {}}


def _put(path: Path, content: str | bytes | tuple[str, str] | None) -> None:
    if path.is_symlink() or path.exists():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if content is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    match content:
        case ("link", target):
            path.symlink_to(target)
        case ("x", text):
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
        case bytes():
            path.write_bytes(content)
        case str():
            path.write_text(content, encoding="utf-8")


def _git(folder: Path, *arguments: str) -> str:
    command: Sequence[str] = ["git", *arguments]
    ended = subprocess.run(command, cwd=folder, env=GIT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, (arguments, ended.stderr)
    return ended.stdout
