"""The file backend's layout: checkpoint, history, locks, references; two processes on one stack; Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from deployer.engine import StackRef
from deployer.errors import Conflict, Corrupt, EngineFailed, Interrupted, InvalidInput, NotFound, Refused
from tests.engine.conftest import CHECKPOINT, REPOSITORY, Lab

RUN = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from deployer.engine import StackRef, choose_engine, read_project
    from deployer.errors import DeployerError
    from tests.engine.provider_files import FileProvider
    from tests.engine.sdk_client import SdkClient
    project = read_project(Path(sys.argv[1]))
    engine = choose_engine(project, "embedded", {"files": lambda: SdkClient(FileProvider(Path(sys.argv[1]) / "root"))})
    try:
        engine.up(StackRef(project, "dev"), on_event=lambda event: print(type(event).__name__, flush=True))
    except DeployerError as error:
        print(type(error).__name__, error, flush=True)
        sys.exit(error.exit_code)
    """
)


def start(lab: Lab) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(lab.dir)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )


def wait_for_line(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    for found in process.stdout:
        if found.strip() == line:
            return
    raise AssertionError(f"the process ended without {line}")


def test_the_files_are_where_the_cli_looks_for_them(any_lab: Lab) -> None:
    any_lab.up('File("a")')
    any_lab.up('File("a", content="2")')
    objects = any_lab.objects
    assert objects.get("meta.yaml") == b"version: 1\n"
    names = sorted(objects.list(""))
    patterns = [
        r"history/demo/dev/dev-\d{19}\.checkpoint\.json",
        r"history/demo/dev/dev-\d{19}\.history\.json",
        r"history/demo/dev/dev-\d{19}\.checkpoint\.json",
        r"history/demo/dev/dev-\d{19}\.history\.json",
        r"meta\.yaml",
        r"stacks/demo/dev\.json",
        r"stacks/demo/dev\.json\.bak",
    ]
    assert len(names) == len(patterns)
    assert all(re.fullmatch(pattern, name) for pattern, name in zip(patterns, names, strict=True)), names
    document = json.loads(objects.get(CHECKPOINT))
    assert (document["version"], document["checkpoint"]["stack"]) == (3, "organization/demo/dev")
    urns = [doc["urn"] for doc in any_lab.resources()]
    assert urns == [
        "urn:pulumi:dev::demo::pulumi:pulumi:Stack::demo-dev",
        "urn:pulumi:dev::demo::pulumi:providers:files::default",
        "urn:pulumi:dev::demo::files:index:File::a",
    ]
    history = json.loads(objects.get([name for name in names if name.endswith(".history.json")][-1]))
    assert (history["kind"], history["result"]) == ("update", "succeeded")
    assert history["resourceChanges"] == {"same": 1, "update": 1}


def test_export_is_what_the_cli_imports(any_lab: Lab) -> None:
    any_lab.up('File("a")')
    assert any_lab.engine().export(any_lab.stack()) == {"version": 3, "deployment": any_lab.deployment()}
    assert any_lab.engine().export(StackRef(any_lab.project(), "other"))["deployment"].get("resources") is None


def test_fields_of_the_cli_are_carried_on(any_lab: Lab) -> None:
    any_lab.up('File("a")')
    document = json.loads(any_lab.objects.get(CHECKPOINT))
    document["checkpoint"]["latest"]["resources"][2] |= {"created": "2024-01-01T00:00:00Z", "sourcePosition": "x#1"}
    any_lab.objects.put(CHECKPOINT, json.dumps(document).encode())
    any_lab.engine().up(any_lab.stack())
    assert any_lab.resource("a")["created"] == "2024-01-01T00:00:00Z"
    any_lab.program('File("a", content="2")')
    any_lab.engine().up(any_lab.stack())
    assert any_lab.resource("a")["sourcePosition"] == "x#1"


def test_a_second_run_is_refused_while_the_first_one_runs(any_lab: Lab) -> None:
    any_lab.program('File("a", wait=3)')
    with start(any_lab) as first:
        wait_for_line(first, "StepStarted")
        with pytest.raises(Conflict) as refused:
            any_lab.engine().up(any_lab.stack())
        assert f"process {first.pid}" in str(refused.value)
        assert socket.gethostname() in str(refused.value)
        (lock,) = any_lab.objects.list("locks/organization/demo/dev")
        assert f".pulumi/{lock}" in str(refused.value)
        assert json.loads(any_lab.objects.get(lock)).keys() >= {"pid", "username", "hostname", "timestamp"}  # the CLI's
        assert any_lab.preview().changes  # reading needs no lock
        assert first.wait() == 0
    any_lab.up()


def test_of_two_runs_at_once_one_does_the_work(any_lab: Lab) -> None:
    any_lab.program('File("a", wait=1)')
    both = [start(any_lab), start(any_lab)]
    codes = sorted(process.wait() for process in both)
    for process in both:
        assert process.stdout is not None
        process.stdout.close()
    assert codes[0] == 0
    assert any_lab.log() == ["create a.txt"]


def test_a_failed_program_writes_nothing_but_its_error(lab: Lab) -> None:
    lab.program('a = File("a"); File("b", content=a.size.apply(lambda size: size.nothing)); File("a")')
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN, str(lab.dir)], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == EngineFailed.exit_code
    assert done.stderr == ""
    assert "two resources of the type" in done.stdout


def test_cancel_removes_the_lock_by_name(any_lab: Lab) -> None:
    any_lab.up('File("a")')
    lock = {"pid": 1, "username": "eve", "hostname": "elsewhere", "timestamp": "2024-01-01T00:00:00Z"}
    any_lab.objects.put("locks/organization/demo/dev/x.json", json.dumps(lock).encode())
    with pytest.raises(Conflict, match=r"eve@elsewhere \(process 1\) since 2024-01-01 00:00:00 UTC"):
        any_lab.engine().up(any_lab.stack())
    assert any_lab.engine().cancel(any_lab.stack()) == ("eve@elsewhere (process 1) since 2024-01-01 00:00:00 UTC",)
    any_lab.up()


def test_ctrl_c_lets_running_steps_finish_and_saves(lab: Lab) -> None:
    lab.program('a = File("a", wait=1); File("b", content=a.path)')
    with start(lab) as process:
        wait_for_line(process, "StepStarted")  # the stack
        wait_for_line(process, "StepStarted")  # a
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        said = process.stdout.read()
        assert process.wait() == Interrupted.exit_code
    assert "Interrupted" in said and "Traceback" not in said
    assert sorted(lab.files()) == ["a.txt"]
    assert "pending_operations" not in lab.deployment()
    lab.up()
    assert lab.log() == ["create a.txt", "create b.txt"]


def test_engines_run_in_other_threads_too(lab: Lab) -> None:
    lab.program('File("a")')
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(lab.up()))
    thread.start()
    thread.join()
    assert results[0].summary == {"create": 2}


def test_stack_references_read_outputs_of_the_same_backend(any_lab: Lab) -> None:
    any_lab.up('pulumi.export("root", "here"); pulumi.export("key", pulumi.Output.secret("hush"))')
    any_lab.program(
        """
        base = pulumi.StackReference("organization/demo/dev")
        File("a", content=base.require_output("root"))
        pulumi.export("key", base.require_output("key"))
        """
    )
    result = any_lab.engine().up(StackRef(any_lab.project(), "next"))
    assert any_lab.files() == {"a.txt": "here"}
    assert result.outputs["key"] == "[secret]"
    any_lab.program('pulumi.StackReference("organization/demo/none")')
    with pytest.raises(NotFound, match="this backend does not have the stack"):
        any_lab.engine().up(StackRef(any_lab.project(), "next"))


BAD_STATES = {
    "not JSON": ("{", Corrupt, "not a Pulumi checkpoint"),
    "no checkpoint": ("{}", Corrupt, "not a Pulumi checkpoint"),
    "version 4": ('{"version": 4, "checkpoint": {}}', Refused, "version 4"),
    "cloud secrets": (
        '{"version": 3, "checkpoint": {"latest": {"secrets_providers": {"type": "cloud"}}}}',
        Refused,
        "passphrases and AWS KMS",
    ),
    "snippets": ('{"version": 3, "checkpoint": {"latest": {"snippets": [{}]}}}', Refused, "PCL snippets"),
}


@pytest.mark.parametrize(("text", "error", "words"), BAD_STATES.values(), ids=BAD_STATES.keys())
def test_states_that_are_not_read(any_lab: Lab, text: str, error: type[Exception], words: str) -> None:
    any_lab.program("pass")
    any_lab.objects.put(CHECKPOINT, text.encode())
    with pytest.raises(error, match=words):
        any_lab.engine().up(any_lab.stack())
    assert any_lab.objects.get(CHECKPOINT) == text.encode()


@pytest.mark.parametrize("url", ["gs://bucket", "azblob://container", "https://api.pulumi.com"])
def test_other_backends_are_left_to_the_cli(lab: Lab, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    lab.program("pass")
    monkeypatch.setenv("PULUMI_BACKEND_URL", url)
    with pytest.raises(Refused, match=rf"not at {url.partition(':')[0]}://.*install the Pulumi CLI"):
        lab.engine().preview(lab.stack())


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "x" * 101])
def test_stack_names_that_are_no_file_names_are_refused(lab: Lab, name: str) -> None:
    lab.program("pass")
    with pytest.raises(InvalidInput, match="not a valid name for a stack"):
        StackRef(lab.project(), name)


def test_a_missing_plugin_is_named(lab: Lab) -> None:
    lab.in_process = False
    with pytest.raises((EngineFailed, NotFound), match="pulumi-resource-files is not installed"):
        lab.up('File("a")')


def test_a_plugin_that_ends_at_once_is_reported_with_what_it_said(lab: Lab) -> None:
    lab.install_plugin()
    script = lab.dir / "bin" / "pulumi-resource-files"
    script.write_text("#!/bin/sh\necho 'no such library' >&2\nexit 3\n")
    with pytest.raises(EngineFailed, match="did not start: no such library"):
        lab.up('File("a")')


def test_plugins_are_ended_with_the_run(lab: Lab) -> None:
    lab.install_plugin()
    script = lab.dir / "bin" / "pulumi-resource-files"
    script.write_text(
        script.read_text()
        .replace("exec ", f"echo $$ >> {lab.dir}/pids\nexec ", 1)
        .replace(f"echo $$ >> {lab.dir}/pids\nexec export", "exec export")
    )
    lab.up('File("a")')
    for pid in Path(lab.dir / "pids").read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
