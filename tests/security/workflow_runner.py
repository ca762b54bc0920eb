"""Runs workflows as GitHub does, as far as deployer's own need it: scripts by bash, actions by stand-ins.

A script runs as the runner runs it with `shell: bash`, in an environment of its own, and its log is read for workflow
commands as the runner reads it (`ActionCommandManager` of actions/runner). The stand-ins of actions do what the actions
do to files and variables. `pip install` has one too: the environment that it makes runs the deployer of the tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.security.workflow_expressions import EXPRESSION, filled, holds

API = Path(__file__).with_name("github_api.py")
_COMMANDS = (
    "add-mask", "add-matcher", "debug", "echo", "endgroup", "error", "group", "notice", "remove-matcher", "save-state",
    "set-env", "set-output", "stop-commands", "warning",
)  # fmt: skip


@dataclass
class StepRun:
    """A step that ran: `environment` is what its script was given, `commands` are what the runner took from its log."""

    name: str
    failed: bool
    environment: Mapping[str, str] = field(default_factory=dict)
    log: str = ""
    commands: list[str] = field(default_factory=list)


@dataclass
class JobRun:
    """A job that ran, or was skipped."""

    name: str
    result: str
    permissions: Mapping[str, str] = field(default_factory=dict)
    environment: str = ""
    roles: list[str] = field(default_factory=list)
    steps: list[StepRun] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""

    @property
    def log(self) -> str:
        return "".join(f"== {each.name}\n{each.log}" for each in self.steps)


@dataclass
class Run:
    """A run of a workflow. `conclusion` is `success`, `failure` or `skipped`."""

    id: int
    path: str
    name: str
    event: Mapping[str, Any]
    jobs: dict[str, JobRun] = field(default_factory=dict)

    @property
    def conclusion(self) -> str:
        results = {job.result for job in self.jobs.values()}
        return "failure" if "failure" in results else "success" if "success" in results else "skipped"


@dataclass
class Runner:
    """Runs the workflows of one repository. `folder` has `origin.git`, and what the runs leave: artifacts, workspaces.

    `write` is false for events of forks: whatever a workflow asks for, the token only reads, and there is no secret.
    """

    folder: Path
    variables: Mapping[str, str]
    secrets: Mapping[str, Mapping[str, str]]  #: by the name of the environment
    extra: Mapping[str, str]  #: environment variables of every script, which stand for what is outside of the runner
    runs: int = 0

    def run(
        self, path: str, text: str, event_name: str, event: Mapping[str, Any], commit: str, *,
        write: bool = True, stop_after: str = "",
    ) -> Run:  # fmt: skip
        """Run all jobs of a workflow in their order. With `stop_after`, only up to that job, as when another one waits
        for its approval; `resume` goes on."""
        workflow = yaml.safe_load(text)
        self.runs += 1
        run = Run(self.runs, path, workflow.get("name", path), event)
        self._go_on(run, workflow, event_name, commit, write, stop_after)
        return run

    def resume(self, run: Run, text: str, event_name: str, commit: str) -> None:
        self._go_on(run, yaml.safe_load(text), event_name, commit, True, "")

    def artifacts(self, run: int, name: str) -> Path:
        return self.folder / "artifacts" / str(run) / name

    def _go_on(
        self, run: Run, workflow: dict[Any, Any], event_name: str, commit: str, write: bool, stop_after: str
    ) -> None:
        ref = run.event.get("ref", "refs/heads/main")
        github = {
            "event": run.event, "event_name": event_name, "repository": "owner/lake", "ref": ref, "sha": commit,
            "run_id": run.id, "workflow": run.name,
        }  # fmt: skip
        for name, about in workflow["jobs"].items():
            if name not in run.jobs:
                run.jobs[name] = _Job(self, run, workflow, name, about, github, commit, write).go()
                if name == stop_after:
                    return


@dataclass
class _Job:
    runner: Runner
    run: Run
    workflow: Mapping[Any, Any]
    name: str
    about: Mapping[str, Any]
    github: Mapping[str, Any]
    commit: str
    write: bool

    def go(self) -> JobRun:
        needed = [self.about["needs"]] if "needs" in self.about else []
        contexts: dict[str, Any] = {
            "github": self.github,
            "vars": self.runner.variables,
            "inputs": self.run.event.get("inputs", {}),
            "needs": {name: {"outputs": self.run.jobs[name].outputs} for name in needed},
            "secrets": {},
            "steps": {},
            "status": "success" if all(self.run.jobs[name].result == "success" for name in needed) else "skipped",
        }
        if not holds(self.about.get("if", "'yes'"), contexts):
            return JobRun(self.name, "skipped")
        asked = self.about.get("permissions", self.workflow.get("permissions", {"contents": "write"}))
        permissions = asked if self.write else {key: "read" for key in asked if key != "id-token"}
        environment = str(self.about.get("environment", ""))
        job = JobRun(self.name, "success", permissions, environment)
        here = self.runner.folder / "jobs" / f"{self.run.id}-{self.name}"
        self.workspace, self.temp, self.bin = here / "workspace", here / "temp", here / "bin"
        for folder in (self.workspace, self.temp, self.bin):
            folder.mkdir(parents=True)
        self._make_commands()
        (here / "event.json").write_text(json.dumps(self.run.event), encoding="utf-8")
        contexts["secrets"] = self.runner.secrets.get(environment, {}) if self.write else {}
        contexts["runner"] = {"temp": str(self.temp), "os": "Linux"}
        contexts["github"] = {**self.github, "token": f"token:{json.dumps(permissions)}"}
        self.exported: dict[str, str] = {}
        self.path: list[str] = []
        summary = here / "summary.md"
        summary.touch()
        for step in self.about["steps"]:
            contexts["status"] = "failure" if job.result == "failure" else "success"
            if holds(step.get("if", "'yes'"), contexts):
                ran = self._step(step, contexts, job, here)
                job.steps.append(ran)
                if ran.failed and not step.get("continue-on-error"):
                    job.result = "failure"
        job.summary = summary.read_text(encoding="utf-8")
        job.outputs = {key: filled(value, contexts) for key, value in self.about.get("outputs", {}).items()}
        return job

    def _step(self, step: Mapping[str, Any], contexts: dict[str, Any], job: JobRun, here: Path) -> StepRun:
        name = str(step.get("name", step.get("uses", step.get("run"))))
        environment = {key: filled(value, contexts) for key, value in step.get("env", {}).items()}
        if "uses" in step:
            given = {key: filled(value, contexts) for key, value in step.get("with", {}).items()}
            try:
                self._action(str(step["uses"]).partition("@")[0], given, job)
            except ActionFailed as error:
                return StepRun(name, True, log=f"{error}\n")
            return StepRun(name, False)
        assert not EXPRESSION.search(step["run"]), "an expression in a script is code of whoever chooses its value"
        return self._script(name, step, environment, contexts, here)

    def _script(
        self, name: str, step: Mapping[str, Any], own: Mapping[str, str], contexts: dict[str, Any], here: Path
    ) -> StepRun:
        assert self.workflow["defaults"]["run"]["shell"] == "bash" and "shell" not in step
        script = here / "script.sh"
        script.write_text(step["run"], encoding="utf-8")
        files = {key: here / key.lower() for key in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH")}
        for file in files.values():
            file.write_text("", encoding="utf-8")
        environment = {
            **self.runner.extra,
            **self.exported,
            **{key: str(file) for key, file in files.items()},
            "PATH": os.pathsep.join([*reversed(self.path), str(self.bin), "/usr/bin", "/bin"]),
            "HOME": str(here),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "owner/lake",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_EVENT_PATH": str(here / "event.json"),
            "GITHUB_STEP_SUMMARY": str(here / "summary.md"),
            "RUNNER_TEMP": str(self.temp),
            **own,
        }
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=self.workspace / filled(step.get("working-directory", "."), contexts),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        log = ended.stdout.decode(errors="replace")
        self.exported |= _variables(files["GITHUB_ENV"])
        self.path += files["GITHUB_PATH"].read_text(encoding="utf-8").splitlines()
        if "id" in step:
            contexts["steps"][step["id"]] = {"outputs": _variables(files["GITHUB_OUTPUT"])}
        return StepRun(name, ended.returncode != 0, environment, log, commands_in(log))

    def _action(self, action: str, given: Mapping[str, str], job: JobRun) -> None:
        match action:
            case "actions/checkout":
                self._check_out(given)
            case "actions/setup-python" | "pulumi/actions":
                pass
            case "aws-actions/configure-aws-credentials":
                if job.permissions.get("id-token") != "write":
                    raise ActionFailed("the job has no token for OIDC")
                job.roles.append(given["role-to-assume"])
                self.exported |= {"AWS_REGION": given["aws-region"], "AWS_SESSION_TOKEN": given["role-to-assume"]}
            case "actions/upload-artifact":
                self._upload(given)
            case "actions/download-artifact":
                if (
                    given.get("run-id")
                    and json.loads(given["github-token"].removeprefix("token:")).get("actions") != "read"
                ):
                    raise ActionFailed("the token reads no artifacts of other runs")
                source = self.runner.artifacts(int(given.get("run-id") or self.run.id), given["name"])
                if not source.is_dir():
                    raise ActionFailed(f"there is no artifact {given['name']}")
                shutil.copytree(source, given["path"], symlinks=True)
            case _:
                raise AssertionError(f"the tests have no stand-in for {action}")

    def _check_out(self, given: Mapping[str, str]) -> None:
        assert given["persist-credentials"] == "false"
        folder = self.workspace / given.get("path", ".")
        folder.mkdir(exist_ok=True)
        origin = (self.runner.folder / "origin.git").as_uri()
        ref, depth = given.get("ref") or self.commit, int(given.get("fetch-depth", 1))
        for command in (
            ["init", "-q", "-b", "none"],
            ["fetch", "-q", *([f"--depth={depth}"] if depth else []), origin, ref],
            ["checkout", "-q", "FETCH_HEAD"],
        ):
            ended = subprocess.run(["git", *command], cwd=folder, env=GIT, capture_output=True, text=True, check=False)
            if ended.returncode:
                raise ActionFailed(ended.stderr)

    def _upload(self, given: Mapping[str, str]) -> None:
        source, target = Path(given["path"]), self.runner.artifacts(self.run.id, given["name"])
        if not source.is_file():
            if given.get("if-no-files-found") == "error":
                raise ActionFailed(f"no files were found: {source}")
            return
        if target.exists():
            raise ActionFailed(f"an artifact {given['name']} exists already on the workflow run")
        target.mkdir(parents=True)
        shutil.copyfile(source, target / source.name)

    def _make_commands(self) -> None:
        """`python`, whose virtual environments install by a stand-in, and `gh`."""
        pip = f"""\
#!/bin/sh
[ "$1 $2 $3 $4" = "-m pip install --require-hashes" ] || exit 97
echo "pip: $PWD $*"
while [ $# -gt 1 ]; do shift; done
grep -q -- "--require-hashes" "$1" && grep -q -- "--hash=sha256:" "$1" || exit 98
printf '#!/bin/sh\\nexec {sys.executable} -P -c "from deployer.__main__ import main; main()" "$@"\\n' \\
  > "$(dirname "$0")/deployer"
chmod +x "$(dirname "$0")/deployer"
"""
        python = f"""\
#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec {sys.executable} "$@"
mkdir -p "$3/bin" && cp "{self.bin}/pip" "$3/bin/python"
"""
        gh = f'#!/bin/sh\nFAKE_GITHUB="{self.runner.folder}" exec {sys.executable} -S -P "{API}" "$@"\n'
        for name, text in {"pip": pip, "python": python, "python3": python, "gh": gh}.items():
            (self.bin / name).write_text(text, encoding="utf-8")
            (self.bin / name).chmod(0o755)


class ActionFailed(Exception):
    """An action failed, in words."""


GIT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def commands_in(log: str) -> list[str]:
    """The workflow commands that the runner takes from a log; those that stop them are left out."""
    found: list[str] = []
    stopped_by = ""
    for line in log.splitlines():
        name, data = _command(line, (*_COMMANDS, stopped_by) if stopped_by else _COMMANDS)
        if not name:
            continue
        if stopped_by:
            stopped_by = "" if name == stopped_by else stopped_by
        elif name == "stop-commands":
            stopped_by = data
        else:
            found.append(line)
    return found


def _command(line: str, known: tuple[str, ...]) -> tuple[str, str]:
    """Name and data: `::name …::data` at the beginning of a line, `##[name …]data` anywhere in it."""
    for pattern, text in ((r"::([^ :]*)[^:]*::(.*)", line.lstrip()), (r".*?##\[([^ \]]*)[^\]]*\](.*)", line)):
        match = re.match(pattern, text)
        if match and match[1].lower() in {each.lower() for each in known}:
            return match[1].lower(), match[2]
    return "", ""


def _variables(file: Path) -> dict[str, str]:
    """What a script has put into GITHUB_OUTPUT or GITHUB_ENV, a line each."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}
