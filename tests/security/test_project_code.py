"""F11: programs and rules that change the process that they run in, so that a plan looks harmless which is not.

The branch deletes a table with rows. Whatever its code does, the plan says so.
"""

# ruff: noqa: F811 -- pytest finds imported fixtures by the names of arguments
from __future__ import annotations

import ctypes
import datetime as dt
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from deployer.errors import Problem
from deployer.policy import load
from deployer.policy.isolated_rules import PythonRules
from deployer.policy.model import RuleFailed
from deployer.policy.rows import PlanView
from tests.cli.conftest import TWO_TABLES, Deployer, project  # noqa: F401
from tests.cli.test_apply import add_rows
from tests.projects import applied_project

DELETES = "delete table (3 rows"
PROGRAM = Path("stacks") / "__main__.py"


def without_planes() -> None:
    add_rows(Path.cwd(), "planes")
    Path("specs/planes.yaml").unlink()
    Path("policies").mkdir()
    Path("policies/rules.yaml").write_text("kind: Policy\nrule: destroys-data\n")


@pytest.fixture
def branch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An applied lake of two tables, and specs without the one that has rows."""
    folder = applied_project(tmp_path / "project", TWO_TABLES, without_planes)
    monkeypatch.chdir(folder)
    return folder


def append(project: Path, text: str) -> None:
    with (project / PROGRAM).open("a") as program:
        program.write("\n" + text)


def prepend(project: Path, text: str) -> None:
    program = project / PROGRAM
    program.write_text(text + "\n" + program.read_text())


#: What a program does to its own process; it comes to its end afterwards, or not.
HARMLESS = {
    "the_reproduction": """
import deployer.app.planning.plan as _p
from dataclasses import replace as _r
_p.judged = lambda w, plan, *a, **k: _r(plan, resources=())
_p.with_cost = lambda w, plan, *a, **k: plan
_p.with_foreign = lambda plan, ops: _r(plan, resources=())
""",
    "the_planner": """
import deployer.plan
from deployer.plan.diff import lakes
from deployer.plan.planning import planner
planner.diff = lakes.diff = lambda *a, **k: ()
deployer.plan.make_plan = lambda *a, **k: None
planner.Plan.refused = property(lambda self: ())
""",
    "the_printer": """
import builtins, sys, json, rich.console
builtins.print = lambda *a, **k: None
json.dumps = lambda *a, **k: "{}"
rich.console.Console.print = lambda *a, **k: None
sys.stdout.write = sys.stderr.write = lambda text: len(text)
""",
    "streams": """
import os, sys
os.write(1, b"Plan for demo: nothing to do\\n{}\\n")
os.write(2, b"::error::forged\\n")
print("Plan: nothing to do", flush=True)
sys.stdout = sys.stderr = None
""",
    "closed_descriptors": "import os\nfor fd in (0, 1, 2):\n    os.close(fd)\n",
    "exit_handler": """
import atexit, os
atexit.register(lambda: os.write(1, b"Plan: nothing to do\\n"))
atexit.register(os._exit, 0)
""",
    "a_thread": """
import os, threading, time
def _go_on():
    while True:
        os.write(1, b"Plan: nothing to do\\n")
        time.sleep(0.01)
threading.Thread(target=_go_on, daemon=True).start()
""",
    "its_parent_killed": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
    "a_child": """
import os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(0.2)
    os.write(1, b"Plan: nothing to do\\n")
    os._exit(0)
""",
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("name", HARMLESS)
def test_what_a_program_does_to_its_process_changes_no_plan(name: str, branch: Path, deployer: Deployer) -> None:
    append(branch, HARMLESS[name])
    ran = deployer("preview", "--format", "json")
    assert ran.code == 0, ran.err
    document = ran.json  # nothing else is on stdout
    [change] = [change for each in document["resources"] for change in each["changes"]]
    assert (change["kind"], change["risk"], change["rows"]) == ("DeleteTable", "destroys", 3)
    assert document["refused"] == 1
    assert [each["rule"] for each in document["policy"]["violations"]] == ["destroys-data"]
    assert not any(line.startswith(("::", "Plan")) for line in ran.err.splitlines()), ran.err


def test_the_verdict_is_not_the_programs(branch: Path, deployer: Deployer) -> None:
    """F11: as in the check that a pull request has to pass, and in its comment."""
    append(branch, HARMLESS["the_reproduction"])
    assert deployer("preview", "--policy-only").code == 3
    comment = deployer("preview", "--format", "markdown").out
    assert "1 to delete" in comment and "🔴 destroys: delete table" in comment
    assert "of this checkout" in comment  # whose rules these are


def test_a_program_cannot_change_the_rules_that_judge_its_plan(branch: Path, deployer: Deployer) -> None:
    """They are read before it runs; what it writes into the folder counts for nobody."""
    append(
        branch,
        f"import pathlib\nfor each in pathlib.Path({str(branch / 'policies')!r}).iterdir():\n    each.write_text('')\n",
    )
    assert deployer("preview", "--policy-only").code == 3
    assert (branch / "policies" / "rules.yaml").read_text() == ""


@pytest.mark.parametrize(
    ("type_", "custom", "shown"),
    [
        ("deployer:index:Evil", True, True),
        ("deployer:aws:DataBucket", False, False),
        ("pulumi:pulumi:StackEvil", True, True),
        ("pulumi:pulumi:StackReference", True, True),
        ("pulumi:pulumi:Stack", False, False),
        ("pulumi:providers:aws", True, False),
        ("pulumi:providers:aws", False, True),
    ],
)
def test_no_type_hides_a_resource_that_a_provider_has(type_: str, custom: bool, shown: bool) -> None:
    from deployer.app.planning.foreign import with_foreign
    from deployer.engine import Operation
    from deployer.plan import Plan

    operation = Operation(f"urn:pulumi:dev::demo::{type_}::x", "create", type_, "x", custom=custom)
    assert bool(with_foreign(Plan("demo", ()), [operation]).foreign) is shown


#: What a program does to end the run early, to hang about, or to say what is no part of the protocol.
ENDS = {
    "at_once": ("import os\nos._exit(0)", "before the program did: exit code 0"),
    "in_the_middle": ("import os, atexit\nimport pulumi\nos._exit(0)", "before the program did: exit code 0"),
    "by_a_signal": ("import os\nos.kill(os.getpid(), 9)", "before the program did: signal Killed"),
    "by_exit": ("import sys\nsys.exit(0)", "the program ended itself with 0"),
    "by_an_interrupt": ("raise KeyboardInterrupt", "the program failed: KeyboardInterrupt: no message"),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_program_that_ends_early_is_an_error(name: str, branch: Path, deployer: Deployer) -> None:
    text, words = ENDS[name]
    prepend(branch, text)
    for command in (("preview",), ("preview", "--policy-only"), ("up", "--yes", "--allow-destroy", "table/air.planes")):
        ran = deployer(*command)
        assert ran.code in ((1,) if command[0] == "preview" else (1, 3)), (command, ran.out, ran.err)
        assert "nothing to do" not in ran.out and "Traceback" not in ran.err
    (branch / "policies" / "rules.yaml").unlink()
    ran = deployer("up", "--yes", "--allow-destroy", "table/air.planes")
    assert (ran.code, words in ran.err) == (1, True), ran.err
    assert list((branch / "lakes" / "demo" / "air").glob("planes-*.lance"))
    (branch / PROGRAM).write_text((branch / PROGRAM).read_text().replace(text, "", 1))
    assert deployer("preview").code == 0  # the next run has a process again


_CHANNEL = """
import gc
from deployer.platform.isolation.channel import Channel
[channel] = [each for each in gc.get_objects() if isinstance(each, Channel)]
"""
FORGED = {
    "done": (_CHANNEL + "channel.send(b'D')", 0, ""),
    "results": (_CHANNEL + "channel.send(b'{\"operations\": []}')", 1, "violates Pulumi's protocol"),
    "an_empty_frame": (_CHANNEL + "channel.send(b'')", 1, "a message of an unknown kind"),
    "no_method": (_CHANNEL + "channel.send(b'C' + bytes(4) + b'\\xff\\xff')", 1, "a call that cannot be read"),
    "cut_off": (_CHANNEL + "channel.send(b'C')", 1, "a call that cannot be read"),
    "no_message": (_CHANNEL + "channel.send(b'C' + bytes(5) + b'\\x06' + b'\\xff' * 9)", 1, "cannot be read"),
    "too_long": (_CHANNEL + "channel._socket.sendall(b'\\x7f\\xff\\xff\\xff')", 1, "bytes, and the limit is"),
    "half_a_frame": (
        _CHANNEL + "import os; channel._socket.sendall(b'\\x00\\x00\\x00\\x09D'); os._exit(0)", 1, "is incomplete",
    ),
    "a_pickle": (_CHANNEL + "import pickle; channel.send(pickle.dumps(print))", 1, "a message of an unknown kind"),
    "an_error": (_CHANNEL + "channel.send(b'F[]')", 1, "its process reported no error"),
    "an_error_of_a_kind": (_CHANNEL + "channel.send(b'F{\"kind\": \"Exit\", \"what\": [1]}')", 1, "no message"),
    "an_error_too_deep": (_CHANNEL + "channel.send(b'F' + b'[' * 100_000)", 1, "its process reported no error"),
    "success_as_an_error": (_CHANNEL + "channel.send(b'F{\"kind\": \"Problem\", \"what\": \"x\"}')", 1, "error: x"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_what_a_program_forges_is_checked(name: str, branch: Path, deployer: Deployer) -> None:
    text, code, words = FORGED[name]
    prepend(branch, text)
    ran = deployer("preview", "--format", "json")
    assert (ran.code, words in ran.err) == (code, True), ran.err
    assert "Traceback" not in ran.err
    if code == 0:  # a program that registers nothing: all of it is told, beside what the planner found
        assert [change["kind"] for each in ran.json["resources"] for change in each["changes"]] == ["DeleteTable"]
        assert {each["address"]: each["action"] for each in ran.json["foreign"]} == {
            "instance/demo": "delete",
            "table/air.flights": "delete",
        }


@pytest.mark.parametrize("kind", ["Refused", "Interrupted", "Conflict", "CommitTimedOut", "InvalidInput", "NotFound"])
def test_a_program_does_not_choose_the_exit_code(kind: str, branch: Path, deployer: Deployer) -> None:
    """F11: exit code 3 says that a policy refuses the plan, and 130 that somebody stopped the command."""
    prepend(
        branch, f"from deployer.errors import {kind}\nraise {kind}('no policy allows it', where='here', remedy='ask')"
    )
    for command in (("preview",), ("preview", "--exit-code"), ("preview", "--policy-only"), ("up", "--yes")):
        ran = deployer(*command)
        assert (ran.code, "here: no policy allows it; ask" in ran.err) == (1, True), (command, ran)


_REGISTER = """
from pulumi.runtime import settings
from pulumi.runtime.proto import alias_pb2, resource_pb2
aliases = [alias_pb2.Alias(spec=alias_pb2.Alias.Spec(parentUrn="x"))]
settings.get_monitor().RegisterResource(resource_pb2.RegisterResourceRequest(
    **{"type": "my:module:Type", "name": "n"} | dict(FIELDS)
))
"""
_CALL = """
from pulumi.runtime import settings
from pulumi.runtime.proto import resource_pb2
settings.get_monitor().CALL
"""
ODD_URNS = {
    "parent": (_REGISTER, "parent='x'", "'x' as `parent`"),
    "short_parent": (_REGISTER, "parent='urn:pulumi:dev::lakes::Type'", "'urn:pulumi:dev::lakes::Type' as `parent`"),
    "dependency": (_REGISTER, "dependencies=['x']", "'x' as `dependencies`"),
    "dependency_of_a_property": (
        _REGISTER,
        "propertyDependencies={'a': resource_pb2.RegisterResourceRequest.PropertyDependencies(urns=['x'])}",
        "'x' as `propertyDependencies`",
    ),
    "provider": (_REGISTER, "custom=True, provider='x'", "'x' as `provider`"),
    "alias": (_REGISTER, "aliasURNs=['x']", "'x' as `aliasURNs`"),
    "parent_of_an_alias": (_REGISTER, "aliases=aliases", "'x' as `aliases`"),
    "deleted_with": (_REGISTER, "deletedWith='x'", "'x' as `deletedWith`"),
    "type": (_REGISTER, "type='a::b'", "the type 'a::b' and the name 'n', which do not make a valid URN"),
    "no_type": (_REGISTER, "type=''", "the type '' and the name 'n', which do not make a valid URN"),
    "name": (_REGISTER, "name='a\\nb'", r"the name 'a\nb', which do not make a valid URN"),
    "outputs": (
        _CALL, "RegisterResourceOutputs(resource_pb2.RegisterResourceOutputsRequest(urn='x'))", "'x' as `urn`",
    ),
    "read": (
        _CALL, "ReadResource(resource_pb2.ReadResourceRequest(type='a:b:C', name='n', id='1', parent='x'))",
        "'x' as `parent`",
    ),
    "invoke": (_CALL, "Invoke(resource_pb2.ResourceInvokeRequest(tok='a:b:c', provider='x'))", "'x' as `provider`"),
}  # fmt: skip


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("name", ODD_URNS)
def test_an_odd_urn_of_a_program_ends_in_words(name: str, branch: Path, deployer: Deployer) -> None:
    """F25: it was an IndexError, or was kept in Pulumi's state, which nothing could read then."""
    code, change, words = ODD_URNS[name]
    before = (branch / ".pulumi" / "stacks" / "lakes" / "dev.json").read_bytes()
    append(branch, code.replace("FIELDS", change).replace("CALL", change))
    (branch / "policies" / "rules.yaml").unlink()
    for command in (("preview",), ("up", "--yes", "--allow-destroy", "table/air.planes")):
        ran = deployer(*command)
        assert (ran.code, words in ran.err) == (1, True), (command, ran.err)
    assert (branch / ".pulumi" / "stacks" / "lakes" / "dev.json").read_bytes() == before


#: Programs that are honest in a preview only.
TURNS = {
    "leaves_a_table_out": (
        "table = lake.tables.__class__\nlake = __import__('dataclasses').replace(lake, tables=())",
        "the specs declare it, and the program does not register it",
    ),
    "drops_a_column": (
        "from dataclasses import replace as _r\n"
        "lake = _r(lake, tables=tuple(_r(t, columns=t.columns[:1]) for t in lake.tables))",
        "the program registers it differently from the specs: columns",
    ),
    "takes_protection_off": (
        "from dataclasses import replace as _r\n"
        "lake = _r(lake, tables=tuple(_r(t, deletion_protection=False) for t in lake.tables))",
        "differently from the specs: deletion_protection",
    ),
    "moves_the_lake": (
        "from dataclasses import replace as _r\nlake = _r(lake, instance=_r(lake.instance, root='lakes/other'))",
        "differently from the specs: root",
    ),
    "adds_a_table": (
        "from dataclasses import replace as _r\n"
        "lake = _r(lake, tables=(*lake.tables, _r(lake.tables[0], name='extra')))",
        "the program registers it, and the specs do not declare it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TURNS)
def test_up_applies_what_was_planned_and_nothing_else(name: str, project: Path, deployer: Deployer) -> None:
    text, words = TURNS[name]
    assert deployer("up", "--yes").code == 0
    flights = project / "specs" / "flights.yaml"
    flights.write_text(flights.read_text() + "description: Departures.\n")
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    (project / PROGRAM).write_text(
        "import pulumi\nfrom deployer.components import declare_project, project_lake\nlake = project_lake()\n"
        f"if not pulumi.runtime.is_dry_run():\n{indented}\ndeclare_project(lake)\n"
    )
    assert "1 to update" in deployer("preview").out
    before = sorted(path.name for path in (project / "lakes").rglob("*.lance"))
    ran = deployer("up", "--yes")
    assert (ran.code, words in ran.err) == (1, True), ran.err
    assert sorted(path.name for path in (project / "lakes").rglob("*.lance")) == before
    assert not (project / "lakes" / "other").exists()
    columns = {each["name"] for each in deployer("describe", "flights", "--json").json["columns"]}
    assert columns == {"id", "delay"}


# --- what the process is


def told(project: Path, deployer: Deployer, text: str) -> str:
    """What a program writes into a file."""
    append(project, f"def tell():\n    import os, sys\n{text}\nfound = str(tell())")
    append(project, f"open({str(project / 'told')!r}, 'w').write(found)")
    assert deployer("preview").code == 0
    return (project / "told").read_text()


SECRETS = {
    "DEPLOYER_PLAN_KEY": "k",
    "DEPLOYER_TOKEN_UNITY": "t",
    "PULUMI_CONFIG_PASSPHRASE": "p",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "i",
    "GITHUB_STEP_SUMMARY": "s",
    "GITHUB_ENV": "e",
}


def test_a_program_has_no_credential_of_deployer(
    project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_PROFILE", "theirs")
    text = (
        "    mine = open('/proc/self/environ').read() if os.path.exists('/proc/self/environ') else ''\n"
        f"    names = {sorted(SECRETS)!r}\n"
        "    return [n for n in names if n in os.environ or n + '=' in mine], os.environ.get('AWS_PROFILE')"
    )
    assert told(project, deployer, text) == "([], 'theirs')"


def test_a_program_has_no_terminal_and_no_file_of_the_command(project: Path, deployer: Deployer) -> None:
    text = (
        "    try:\n        os.open('/dev/tty', os.O_RDWR)\n        tty = True\n"
        "    except OSError:\n        tty = False\n"
        "    fds = [fd for fd in range(3, 256) if os.path.exists(f'/proc/self/fd/{fd}')]\n"
        "    kinds = sorted(os.readlink(f'/proc/self/fd/{fd}').split(':')[0] for fd in fds)\n"
        "    return tty, sys.stdin.read(), [k for k in kinds if k not in ('socket', 'anon_inode')]"
    )
    assert told(project, deployer, text) == "(False, '', [])"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is closed on Linux")
def test_the_memory_of_the_command_is_closed_from_when_a_program_runs(project: Path, deployer: Deployer) -> None:
    """Who is not root can read neither its environment nor its memory, nor trace it; the kernel tells by the owner."""
    from deployer.engine import Event
    from deployer.engine.embedded import EmbeddedEngine
    from deployer.engine.project.project import StackRef, read_project
    from deployer.platform.isolation.surroundings import _GET_DUMPABLE, _prctl

    (project / PROGRAM).write_text("print('now')")
    seen: list[tuple[Event, int]] = []
    EmbeddedEngine({}).preview(
        StackRef(read_project(project), "dev"), on_event=lambda event: seen.append((event, _prctl(_GET_DUMPABLE)))
    )
    assert seen and {dumpable for _, dumpable in seen} == {0}
    assert _prctl(_GET_DUMPABLE) == 0


def test_bytecode_beside_the_program_is_never_run(project: Path, deployer: Deployer) -> None:
    """A pyc file that is not compared with its source would run in place of a source that is as it should be."""
    import importlib.util
    import marshal

    assert deployer("up", "--yes").code == 0
    append(project, "import own")
    source = project / "stacks" / "own.py"
    source.write_text("TEXT = 'as it should be'\n")
    code = compile(f"open({str(project / 'told')!r}, 'w')\n" + source.read_text(), str(source), "exec")
    unchecked = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code)
    cached = Path(importlib.util.cache_from_source(str(source)))
    cached.parent.mkdir(exist_ok=True)
    cached.write_bytes(unchecked)
    (project / "stacks" / "aws.pyc").write_bytes(unchecked)
    flights = project / "specs" / "flights.yaml"
    flights.write_text(flights.read_text() + "description: Departures.\n")
    assert deployer("up", "--yes").code == 0
    assert not (project / "told").exists()


@pytest.mark.parametrize(
    "beside", ["json/__init__.py", "decimal.py", "local.cpython-311-x86_64-linux-gnu.so", "aws.pyc"]
)
def test_a_module_beside_the_packaged_program_makes_it_another(beside: str, project: Path, deployer: Deployer) -> None:
    from deployer.app.stack.fast_path import is_packaged_program
    from deployer.app.workspace import open_workspace

    assert is_packaged_program(open_workspace(project, "dev", None))
    file = project / "stacks" / beside
    file.parent.mkdir(exist_ok=True)
    file.touch()
    assert not is_packaged_program(open_workspace(project, "dev", None))


def test_a_module_of_the_project_stands_for_none_of_the_environment(project: Path, deployer: Deployer) -> None:
    (project / "pulumi.py").write_text("raise SystemExit")
    (project / "deployer.py").write_text("raise SystemExit")
    (project / "yaml.py").write_text("raise SystemExit")
    append(project, "import yaml")
    assert deployer("preview").code == 0


# --- output


def test_what_a_program_prints_is_marked_and_bounded(project: Path, deployer: Deployer) -> None:
    append(
        project,
        "import os\nos.write(1, b'\\x1b[2Jwiped\\r\\n::add-mask::x\\n' + b'y' * 100_000 + b'\\n')\n"
        "os.write(1, b'z\\n' * 1_000_000)",
    )
    ran = deployer("preview", "--format", "json")
    assert json.loads(ran.out)["format"] == 1
    assert "\x1b" not in ran.err and "\r" not in ran.err
    lines = ran.err.splitlines()
    assert all(line.startswith("program: ") for line in lines), lines[:3]
    assert "program: ::add-mask::x" in lines and max(map(len, lines)) < 5_000 and len(lines) < 5_100
    assert "there is more, which is not shown" in lines[-1]


# --- processes


def test_no_process_is_left(project: Path) -> None:
    """A command whose program started others in its group, and one that was killed: nothing of theirs goes on."""
    append(
        project,
        "import os, subprocess, time\n"
        f"child = subprocess.Popen(['sleep', '300'])\nopen({str(project / 'told')!r}, 'w')"
        ".write(f'{os.getpid()} {os.getppid()} {child.pid}')\n",
    )
    command = [sys.executable, "-P", "-m", "deployer", "preview"]
    assert subprocess.run(command, cwd=project, capture_output=True, check=False).returncode == 0
    assert gone(project)
    append(project, "time.sleep(300)")
    (project / "told").unlink()
    running = subprocess.Popen(command, cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 300
    while not ((project / "told").exists() and (project / "told").read_text().count(" ") == 2):
        assert time.monotonic() < until and running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert gone(project)


def gone(project: Path) -> bool:
    """Whether the processes that a program named have ended."""
    numbers = [int(number) for number in (project / "told").read_text().split()]
    until = time.monotonic() + 300
    while time.monotonic() < until:
        if not any(is_running(number) for number in numbers):
            return True
        time.sleep(0.02)
    return False


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def test_a_second_interrupt_ends_a_program_that_hears_none(project: Path) -> None:
    append(project, f"import time\nopen({str(project / 'told')!r}, 'w').write('1 ')\nwhile True:\n    time.sleep(1)")
    command = [sys.executable, "-P", "-m", "deployer", "preview"]
    running = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 300
    while not (project / "told").exists():
        assert time.monotonic() < until and running.poll() is None
        time.sleep(0.02)
    while running.poll() is None:
        assert time.monotonic() < until
        running.send_signal(signal.SIGINT)
        time.sleep(0.2)
    out, err = running.communicate()
    assert (running.returncode, out, "Traceback" in err) == (130, "", False), err


def test_an_interrupt_at_the_end_of_a_command_prints_no_traceback(tmp_path: Path) -> None:
    """One more Ctrl-C, while a command that has its result waits for what is left of it."""
    waiting = tmp_path / "waiting"
    code = (
        "import atexit, signal, sys\nfrom deployer.__main__ import main\n"
        f"atexit.register(lambda: (open({str(waiting)!r}, 'w').close(), signal.pause()))\n"
        "sys.argv = ['deployer', '--version']\nmain()\n"
    )
    running = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 300
    while not waiting.exists():
        assert time.monotonic() < until and running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=300)
    assert (running.returncode, err) == (0, "")


# --- rules


RULES = {
    "the_reproduction": (
        "import deployer.policy.evaluate as e, deployer.plan.verdict as v\n"
        "e._violation = lambda *a: None\nv.Verdict.denied = property(lambda self: ())\n"
        "import deployer.app.planning.policies as p\np.judged = lambda w, plan, *a, **k: plan\n"
    ),
    "the_other_rules": (
        "import deployer.policy.builtin as b\nb.BUILTIN = {}\n"
        "from deployer.policy import rule\n@rule\ndef nice(plan):\n    return []\n"
    ),
    "the_plan": (
        "from deployer.policy import rule\n@rule\ndef nice(plan):\n"
        "    object.__setattr__(plan, 'changes', ())\n    object.__setattr__(plan, 'resources', ())\n    return []\n"
    ),
    "its_parent_killed": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
    "streams": "import os\nos.write(1, b'Policy: no violations\\n')\nos.close(1)\nos.close(2)\n",
    "a_thread": (
        "import os, threading, time\ndef go():\n    while True:\n"
        "        os.write(1, b'x\\n')\n        time.sleep(0.01)\n"
        "threading.Thread(target=go).start()\n"
    ),
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("name", RULES)
def test_what_rules_do_to_their_process_changes_no_verdict(name: str, branch: Path, deployer: Deployer) -> None:
    (branch / "policies" / "a.py").write_text(RULES[name])
    ran = deployer("preview", "--policy-only", "--format", "json")
    assert ran.code == 3, ran.err
    assert [each["rule"] for each in ran.json["policy"]["violations"]] == ["destroys-data"]


_ANSWER = """
import gc, json
from deployer.platform.isolation.channel import Channel
[channel] = [each for each in gc.get_objects() if isinstance(each, Channel)]
from deployer.policy import rule
@rule
def nice(plan):
    return []
def answer(value):
    channel.send(json.dumps(value).encode())
"""
_RULE = {"name": "nice", "enforcement": "mandatory", "description": "", "stacks": [], "addresses": [], "line": 1}
BROKEN_RULES = {
    "ends_while_loading": ("import os\nos._exit(0)", "the file did not answer: its process ended with exit code 0"),
    "ends_when_asked": (
        "import os\nfrom deployer.policy import rule\n@rule\ndef f(plan):\n    os._exit(0)\n",
        "the rule f did not answer: its process ended with exit code 0",
    ),
    "asked_after_its_end": (
        "import os\nfrom deployer.policy import rule\n@rule\ndef f(plan):\n    os._exit(0)\n"
        "@rule\ndef g(plan):\n    return []\n",
        "a.py:6:1: the rule g did not run: another rule ended its process; fix that rule",
    ),
    "interrupts_while_loading": (
        "\nraise KeyboardInterrupt", "a.py:2:1: the file cannot be run: KeyboardInterrupt; fix it",
    ),
    "interrupts_when_asked": (
        "from deployer.policy import rule\n@rule\ndef f(plan):\n    raise KeyboardInterrupt('now')\n",
        "a.py:4:1: the rule f failed: KeyboardInterrupt: now; fix the rule",
    ),
    "exits_when_asked": (
        "from deployer.policy import rule\n@rule\ndef f(plan):\n    raise SystemExit(0)\n",
        "a.py:4:1: the rule f failed: SystemExit: 0; fix the rule",
    ),
    "gives_what_is_no_json": (
        "from deployer.policy import Finding, rule\n@rule\ndef f(plan):\n    yield Finding('table/a.b', object())\n",
        "the rule f gave an invalid Finding",
    ),
    "no_list": (_ANSWER + "answer([])", "defines an invalid rule"),
    "no_json": (_ANSWER + "channel.send(b'{')", "defines an invalid rule"),
    "too_deep": (_ANSWER + "channel.send(b'[' * 100_000)", "defines an invalid rule"),
    "no_rules": (_ANSWER + "answer({})", "defines an invalid rule"),
    "no_object": (_ANSWER + "answer(3)", "defines an invalid rule"),
    "bad_name": (_ANSWER + f"answer({{'rules': [{_RULE | {'name': 'a b'}!r}]}})", "defines an invalid rule"),
    "bad_enforcement": (
        _ANSWER + f"answer({{'rules': [{_RULE | {'enforcement': 'no'}!r}]}})", "defines an invalid rule",
    ),
    "bad_line": (_ANSWER + f"answer({{'rules': [{_RULE | {'line': 0}!r}]}})", "defines an invalid rule"),
    "bad_globs": (_ANSWER + f"answer({{'rules': [{_RULE | {'stacks': [1]}!r}]}})", "defines an invalid rule"),
    "bad_findings": (
        _ANSWER + f"answer({{'rules': [{_RULE!r}]}})\nanswer({{'found': [1]}})", "gave an invalid Finding",
    ),
    "bad_texts": (
        _ANSWER + f"answer({{'rules': [{_RULE!r}]}})\nanswer({{'found': [{{'address': 1}}]}})",
        "gave an invalid Finding",
    ),
    "no_findings": (_ANSWER + f"answer({{'rules': [{_RULE!r}]}})\nanswer({{}})", "gave an invalid Finding"),
    "no_answer": (_ANSWER + f"answer({{'rules': [{_RULE!r}]}})\nanswer(3)", "is not a list of findings"),
    "a_pickle": (_ANSWER + "import pickle\nchannel.send(pickle.dumps([]))", "defines an invalid rule"),
}  # fmt: skip


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("name", BROKEN_RULES)
def test_rules_that_break_their_process_break_the_preview(name: str, branch: Path, deployer: Deployer) -> None:
    text, words = BROKEN_RULES[name]
    (branch / "policies" / "a.py").write_text(text)
    ran = deployer("preview", "--policy-only")
    assert (ran.code, words in ran.err) == (1, True), ran.err
    assert "Traceback" not in ran.err and ran.out == ""


_SLOW = """
    import gc, time
    from deployer.platform.isolation.channel import Channel
    [channel] = [each for each in gc.get_objects() if isinstance(each, Channel)]
    channel._socket.sendall(bytes([0, 0, 255, 255]))
    while True:
        channel._socket.sendall(b" ")
        time.sleep(0.01)
"""
ENDLESS = "while True:\n    pass\n"


def test_a_file_of_rules_that_never_ends_is_ended(
    branch: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F24: a preview waited for it forever."""
    monkeypatch.setattr(load, "PythonRules", partial(PythonRules, seconds=0.1))
    (branch / "policies" / "a.py").write_text(ENDLESS)
    ran = deployer("preview", "--policy-only")
    words = "policies/a.py:1:1: the file takes more than 0.1 s and was ended; make it faster"
    assert (ran.code, words in ran.err, ran.out) == (1, True, ""), ran.err


@pytest.mark.parametrize("slow", ["the_rule", "its_answer"])
def test_a_rule_that_never_ends_is_ended(slow: str, tmp_path: Path) -> None:
    """F24: and one that gives its answer byte by byte."""
    code = {"the_rule": "    while True:\n        pass\n", "its_answer": _SLOW}[slow]
    file = tmp_path / "a.py"
    file.write_text(
        f"from deployer.policy import rule\n@rule\ndef f(plan):\n{code}@rule\ndef g(plan):\n    return []\n"
    )
    rules = PythonRules(print)
    problems: list[Problem] = []
    first, second = rules.load([(file, "a.py")], problems)["a.py"]
    assert not problems
    rules._process.channel.seconds = 0.1
    plan = PlanView("dev", "demo", (), (), (), dt.datetime.now(dt.UTC))
    with pytest.raises(RuleFailed) as failed:
        list(first.check(plan))
    assert str(failed.value.problem) == ("a.py:2:1: the rule f takes more than 0.1 s and was ended; make it faster")
    with pytest.raises(RuleFailed, match="the rule g did not run"):
        list(second.check(plan))
    rules.close()


def test_rules_at_a_ref_run_in_a_process_too(branch: Path, deployer: Deployer) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=branch, check=True, capture_output=True)

    (branch / "policies" / "a.py").write_text(
        "import os\nfrom deployer.policy import rule\n@rule\ndef f(plan):\n"
        "    return [each.violation(str(os.getpid())) for each in plan.resources]\n"
    )
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "first")
    ran = deployer("preview", "--against", "main", "--policy-only", "--format", "json")
    found = {each["message"] for each in ran.json["policy"]["violations"]}
    assert ran.json["policy"]["ref"] == "main" and len(found) == 1 and str(os.getpid()) not in found


DAEMONS = """
import os, time
from pathlib import Path
for number in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.setsid()
        if number == 2 and os.fork():  # and one that begins another
            os._exit(0)
        Path(FOLDER, str(os.getpid())).touch()
        time.sleep(600)
        os._exit(0)
while len(list(Path(FOLDER).iterdir())) < 3:
    time.sleep(0.01)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the group is killed")
@pytest.mark.parametrize("place", [PROGRAM, Path("policies") / "a.py"], ids=["program", "policy"])
def test_what_code_of_the_project_leaves_behind_is_gone_before_the_plan_is_shown(
    place: Path, branch: Path, tmp_path: Path, deployer: Deployer
) -> None:
    """F11: a daemon read the environment of the command once its memory was open again, and wrote to its output."""
    folder = tmp_path / "daemons"
    folder.mkdir()
    with (branch / place).open("a") as file:
        file.write(DAEMONS.replace("FOLDER", repr(str(folder))))
    assert "delete table" in deployer("preview").out
    begun = [int(each.name) for each in folder.iterdir()]
    assert len(begun) == 3 and not [pid for pid in begun if Path(f"/proc/{pid}").exists()]
    assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0  # PR_GET_DUMPABLE
