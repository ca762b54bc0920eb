"""Programs that go wrong or ask for what this engine does not do, and what their users read."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from deployer.engine import Diagnostic, ProgramOutput, read_project
from deployer.errors import DeployerError, EngineFailed, InvalidInput, NotFound, Refused
from tests.engine.conftest import PRELUDE, Lab

FIRST = PRELUDE.count("\n") + 1

ERRORS = {
    "an exception": (
        "x = 1\n1 / 0",
        f"__main__.py:{FIRST + 1}: the program failed: ZeroDivisionError: division by zero",
    ),
    "a syntax error": ("x = (", f"__main__.py:{FIRST}: the program does not parse"),
    "a run error": ('raise pulumi.RunError("no bucket")', f"__main__.py:{FIRST}: no bucket"),
    "missing configuration": ('pulumi.Config().require("region")', "demo:region"),
    "in an apply": ('File("a").size.apply(lambda size: size.nothing)', f"__main__.py:{FIRST}: the program failed"),
    "a name twice": ('File("a"); File("a")', f"__main__.py:{FIRST}: two resources of the type files:index:File"),
    "sys.exit": ("import sys; sys.exit(3)", "the program ended itself with 3"),
    "an unknown module": ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
    "an alias of another": (
        'File("b"); File("c", opts=Opts(aliases=[pulumi.Alias(name="b")]))',
        "the alias urn:pulumi:dev::demo::files:index:File::b belongs to",
    ),
}


@pytest.mark.parametrize(("text", "words"), ERRORS.values(), ids=ERRORS.keys())
def test_a_program_that_fails_is_reported_at_its_own_line(lab: Lab, text: str, words: str) -> None:
    if "alias" in words:
        lab.up('File("b")')
    with pytest.raises(EngineFailed) as failed:
        lab.up(text)
    assert words in str(failed.value)
    assert "Traceback" not in str(failed.value) and 'File "' not in str(failed.value)


def test_a_failed_program_deletes_nothing(lab: Lab) -> None:
    lab.up('File("a"); File("b")')
    with pytest.raises(EngineFailed):
        lab.up('File("a")\nraise ValueError("stop")')
    assert sorted(lab.files()) == ["a.txt", "b.txt"]


REFUSED = {
    "transforms of the stack": (
        "pulumi.runtime.register_resource_transform(lambda args: None)",
        "a transform of resources",
    ),
    "transforms of a resource": ('File("a", opts=Opts(transforms=[lambda args: None]))', "a transform of a resource"),
    "hooks": (
        'File("a", opts=Opts(hooks=pulumi.ResourceHookBinding(before_create=[lambda args: None])))',
        "a resource hook",
    ),
    "remote components": (
        'class Far(pulumi.ComponentResource):\n    pass\nFar("files:index:Far", "f", {}, None, True)',
        "the remote component files:index:Far",
    ),
}


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_done_is_refused_in_words(lab: Lab, text: str, words: str) -> None:
    with pytest.raises(DeployerError) as refused:
        lab.up(text)
    assert words in str(refused.value)
    assert "install `pulumi`" in str(refused.value)


def test_modules_of_the_program_are_read_anew_for_each_run(lab: Lab) -> None:
    lab.program('import beside; File("a", content=beside.TEXT)')
    (lab.dir / "stacks" / "beside.py").write_text('TEXT = "first"')
    lab.up()
    (lab.dir / "stacks" / "beside.py").write_text('TEXT = "second, and longer"')
    lab.up()
    assert lab.files() == {"a.txt": "second, and longer"}


def test_the_working_directory_is_the_programs_folder_and_comes_back(lab: Lab) -> None:
    before = Path.cwd()
    result = lab.up('import os; pulumi.export("cwd", os.getcwd()); pulumi.export("root", pulumi.get_project())')
    assert result.outputs == {"cwd": str(lab.dir / "stacks"), "root": "demo"}
    assert Path.cwd() == before


def test_paths_of_assets_start_from_the_programs_folder(lab: Lab) -> None:
    lab.program(
        """
        from google.protobuf import struct_pb2
        from pulumi.runtime.proto import resource_pb2
        inputs = struct_pb2.Struct()
        inputs.update({"a": {"4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17", "path": "beside"}})
        request = resource_pb2.RegisterResourceRequest(type="demo:index:Group", name="g", object=inputs)
        pulumi.runtime.settings.get_monitor().RegisterResource(request)
        """
    )
    (lab.dir / "stacks" / "beside").write_text("text")
    lab.up()
    assert lab.resource("g")["inputs"]["a"]["hash"] == hashlib.sha256(b"text").hexdigest()


#: Requests that no SDK sends.
ODD = {
    "no type": ("type='', name='x', custom=True", "which do not make a valid URN"),
    "a type of a path": ("type='../../x/y:index:Z', name='x', custom=True", ""),
    "a provider of a path": ("type='pulumi:providers:../x', name='x', custom=True", ""),
    "a provider that is none": (
        "type='files:index:File', name='x', custom=True, provider='y'",
        "a provider's URN and id",
    ),
    "a parent that is none": ("type='files:index:File', name='x', parent='y'", "'y' as `parent`, which is not a URN"),
    "an unknown provider": (
        "type='files:index:File', name='x', custom=True, provider='urn:pulumi:dev::demo::pulumi:providers:files::x::1'",
        "in neither the program nor the state",
    ),
}


@pytest.mark.parametrize(("request_", "words"), ODD.values(), ids=ODD.keys())
def test_odd_requests_end_in_words(lab: Lab, request_: str, words: str) -> None:
    lab.program(
        f"""
        from pulumi.runtime.proto import resource_pb2
        request = resource_pb2.RegisterResourceRequest({request_})
        pulumi.runtime.settings.get_monitor().RegisterResource(request)
        """
    )
    with pytest.raises(DeployerError) as refused:
        lab.engine().preview(lab.stack())
    assert words in str(refused.value)


def test_configuration_comes_from_the_project_the_stack_and_the_run(lab: Lab) -> None:
    with (lab.dir / "Pulumi.yaml").open("a") as file:
        file.write("config:\n  demo:one: project\n  two:\n    default: project\n  demo:three: project\n")
    (lab.dir / "Pulumi.dev.yaml").write_text("config:\n  demo:two: stack\n  demo:three: stack\n  demo:flag: true\n")
    lab.program(
        """
        config = pulumi.Config()
        for name in ("one", "two", "three"):
            pulumi.export(name, config.require(name))
        pulumi.export("flag", config.require_bool("flag"))
        """
    )
    result = lab.up(config={"demo:three": "run"})
    assert result.outputs == {"one": "project", "two": "stack", "three": "run", "flag": True}


def test_an_operation_says_whether_a_provider_has_its_resource(lab: Lab) -> None:
    plan = lab.preview('pulumi.ComponentResource("demo:index:Group", "g"); File("a")')
    assert {operation.name: operation.custom for operation in plan.operations} == {
        "demo-dev": False,
        "g": False,
        "a": True,
    }


def test_what_the_program_prints_is_an_event_a_line(lab: Lab) -> None:
    lab.up('print("one"); import sys; sys.stderr.write("two"); sys.stdout.flush()')
    assert [event.text for event in lab.events if isinstance(event, ProgramOutput)] == ["one", "two"]


def test_messages_of_the_program_are_diagnostics(lab: Lab) -> None:
    plan = lab.preview('pulumi.log.warn("mind this"); pulumi.log.debug("not this")')
    assert plan.diagnostics == (Diagnostic("", "warning", "mind this"),)


PROJECTS = {
    "no name": ("runtime: python\n", r"Pulumi.yaml:1: `name` is missing"),
    "other language": ("name: x\nruntime: nodejs\n", r"Pulumi.yaml:2: runtime 'nodejs' is not supported"),
    "no program": ("name: x\nruntime: python\nmain: none\n", r"Pulumi.yaml:3: there is no program at"),
    "outside": ("name: x\nruntime: python\nmain: ../up\n", r"Pulumi.yaml:3: `main` leaves the project's folder"),
    "not YAML": ("name: [x\n", r"Pulumi.yaml:1:7: `\[…\]` or `{…}` is not closed"),
    "a list": ("- x\n", r"Pulumi.yaml:1: not a mapping"),
    "plugin without a path": (
        "name: x\nruntime: python\nmain: .\nplugins:\n  providers:\n  - name: a\n",
        r"Pulumi.yaml:4: a provider plugin needs",
    ),
    "backend without a URL": ("name: x\nruntime: python\nmain: .\nbackend: file\n", r"Pulumi.yaml:4: `backend` has no"),
}


@pytest.mark.parametrize(("text", "words"), PROJECTS.values(), ids=PROJECTS.keys())
def test_project_files_that_cannot_be_used(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "__main__.py").touch()
    (tmp_path / "Pulumi.yaml").write_text(text)
    with pytest.raises(InvalidInput) as refused:
        read_project(tmp_path)
    assert re.search(words, str(refused.value))


def test_a_folder_without_a_project_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no Pulumi\.yaml here"):
        read_project(tmp_path)


def test_language_plugins_and_policies_are_left_to_the_cli(tmp_path: Path) -> None:
    (tmp_path / "__main__.py").touch()
    text = "name: x\nruntime: python\nplugins:\n  analyzers:\n  - name: a\n    path: b\n"
    (tmp_path / "Pulumi.yaml").write_text(text)
    with pytest.raises(Refused, match="needs the official Pulumi CLI"):
        read_project(tmp_path)
