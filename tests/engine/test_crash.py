"""Runs that are killed at every step boundary, and the run after them."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from deployer.engine import StackRef, choose_engine, read_project
from deployer.engine.persistence.backend import stack_files
from deployer.errors import Conflict, Corrupt, EngineFailed
from deployer.platform.system import failpoints
from tests.engine.conftest import CHECKPOINT, PRELUDE, Lab, backend_url_of, check_state, lab_in
from tests.engine.provider_files import FileProvider
from tests.engine.sdk_client import SdkClient

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.engine.test_crash", "deployer.engine.embedded"])

TWENTY = """
before = []
for index in range(20):
    before.append(File(f"f{index}", content=f"{index}", opts=Opts(depends_on=before[-2:-1])))
pulumi.export("last", before[-1].path)
"""
BEFORE = """
a = File("a", content="1"); b = File("b", content="1"); c = File("c", kind="k1")
d = File("d", kind="k1"); e = File("e", kind=d.kind); File("f", opts=Opts(depends_on=[e])); File("g")
"""
AFTER = """
a = File("a", content="1"); b = File("b", content="2", opts=Opts(depends_on=[a])); c = File("c", kind="k2")
d = File("d", kind="k2", opts=Opts(delete_before_replace=True)); e = File("e", kind=d.kind); File("h", content=c.path)
"""
POINTS = ("engine.step.begin", "engine.step.done", "engine.step.end")
LAST_POINTS = ("engine.checkpoint.begin@1", "engine.checkpoint.written@1")


class Unresuming(FileProvider):
    """As providers of others are: a create that was interrupted is not taken up by the next one."""

    resumes_creates = False


def run_up(
    folder: Path, root: Path, failpoint: str, aws: dict[str, str], kind: type[FileProvider] = FileProvider
) -> None:
    """The body of a process: one up that is killed at the failpoint."""
    os.environ.update(aws)  # the server of forks has the environment that it was started in
    failpoints._SETTING = failpoint
    failpoints._passed.clear()
    project = read_project(folder)
    engine = choose_engine(project, "embedded", {"files": lambda: SdkClient(kind(root))})
    engine.up(StackRef(project, "dev"), parallel=4)


def killed_up(lab: Lab, failpoint: str, kind: type[FileProvider] = FileProvider) -> bool:
    """Whether the process was killed, and did not come to its end."""
    aws = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    process = FORKS.Process(target=run_up, args=(lab.dir, lab.root, failpoint, aws, kind))
    process.start()
    process.join()
    assert process.exitcode in {0, -signal.SIGKILL}
    return process.exitcode != 0


def boundaries(steps: int) -> list[str]:
    return [f"{point}@{number}" for number in range(1, steps + 1) for point in POINTS] + list(LAST_POINTS)


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.full if part == 2 else pytest.mark.slow) for part in (1, 2, 3))]
)
def test_a_killed_up_is_taken_up_where_it_stopped(lab: Lab, tmp_path: Path, part: int) -> None:
    tried = boundaries(20)[part::4]
    for number, point in enumerate(tried):
        case = fresh(lab, tmp_path / str(number))
        case.program(TWENTY)
        assert killed_up(case, point), point
        case.up()
        check_state(case)
        assert case.files() == {f"f{index}.txt": str(index) for index in range(20)}, point
        done = Counter(case.log())
        again = {line for line in done if line.startswith("create-again")}
        assert set(done.values()) == {1}, point
        assert len(again) <= 4, point  # only what was under way, of at most 4 at a time
        assert "pending_operations" not in case.deployment()


@pytest.mark.full
def test_a_killed_up_is_taken_up_where_it_stopped_on_s3(
    request: pytest.FixtureRequest, tmp_path: Path, passphrase: None
) -> None:
    for number, point in enumerate(boundaries(5)):
        case = lab_in(tmp_path / str(number), backend_url_of(request, "s3"))
        case.program(TWENTY.replace("20", "4"))
        assert killed_up(case, point) or point.endswith("@5"), point  # the stack itself is no step
        case.up()
        assert case.files() == {f"f{index}.txt": str(index) for index in range(4)}, point
        assert set(Counter(case.log()).values()) == {1}, point
        assert "pending_operations" not in case.deployment()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("part", range(2))
def test_a_killed_change_is_taken_up_where_it_stopped(lab: Lab, tmp_path: Path, part: int) -> None:
    killed = 0
    for number, point in enumerate(boundaries(10)[part::2]):
        case = fresh(lab, tmp_path / str(number))
        case.up(BEFORE)
        case.clear_log()
        case.program(AFTER)
        killed += killed_up(case, point)
        case.up()
        assert case.files() == {
            "a.txt": "1",
            "b.txt": "2",
            "c.k2": "",
            "d.k2": "",
            "e.k2": "",
            "h.txt": str(case.root / "files" / "c.k2"),
        }, point
        assert set(Counter(case.log()).values()) == {1}, (point, case.log())
        assert not any(doc.get("delete") or doc.get("pendingReplacement") for doc in case.resources())
    assert killed > 10


#: What a killed run created, as the next one finds it. The id of a file is not its name: the engine finds it where
#: another input, here the content, has it.
UNFINISHED = {
    "it is found and taken over": ('File("a", content="a.txt", fail="again")', None, ""),
    "it has other contents": (
        'File("a", content="a.txt", fail="again")',
        "other",
        "a.txt exists; an earlier run was killed",
    ),
    "its id is unknown": (
        'File("a", content="1", fail="again")',
        None,
        "it may exist outside of the state: delete it",
    ),
}


@pytest.mark.parametrize("case", UNFINISHED)
def test_a_create_that_a_kill_cut_off_is_taken_over_where_it_is_surely_our_own(case: str, lab: Lab) -> None:
    program, contents, message = UNFINISHED[case]
    lab.program(program)
    assert killed_up(lab, "engine.step.done@1", Unresuming)
    file = lab.root / "files" / "a.txt"
    assert file.exists()
    if contents is not None:
        file.write_text(contents)
    lab.kind = Unresuming
    if not message:
        lab.up()
        assert lab.log() == ["create a.txt"] and "pending_operations" not in lab.deployment()
        lab.up()
        assert lab.log() == ["create a.txt"]
        return
    for _ in range(2):  # it is not forgotten
        with pytest.raises(EngineFailed, match=message):
            lab.up()
    assert len(lab.deployment()["pending_operations"]) == 1
    file.unlink()  # as the message says
    lab.up()
    assert lab.log() == ["create a.txt", "create a.txt"] and "pending_operations" not in lab.deployment()


def test_a_destroy_after_a_kill_leaves_nothing(lab: Lab, tmp_path: Path) -> None:
    for number, point in enumerate(boundaries(3)):
        case = fresh(lab, tmp_path / str(number))
        case.program('File("a"); File("b"); File("c")')
        killed_up(case, point)
        case.destroy()
        assert case.files() == {}, point
        assert case.resources() == [] and "pending_operations" not in case.deployment()


def test_previews_and_exports_read_through_the_journal_of_a_killed_run(any_lab: Lab) -> None:
    any_lab.program(TWENTY)
    assert killed_up(any_lab, "engine.step.end@8")
    before = journal_of(any_lab)
    exported = any_lab.engine().export(any_lab.stack())["deployment"]
    # what ended is in it; of four workers, others may have begun
    assert len([doc for doc in exported["resources"] if doc["type"] == "files:index:File"]) >= 8
    same = [operation for operation in any_lab.preview().operations if operation.op == "same"]
    assert len(same) >= 8
    assert before and journal_of(any_lab) == before


def journal_of(lab: Lab) -> dict[str, bytes]:
    """The journal's objects."""
    return {path: lab.objects.get(path) for path in lab.objects.list("stacks") if ".journal" in path}


def test_a_journal_with_a_gap_is_refused_and_one_without_its_beginning_is_none(
    request: pytest.FixtureRequest, tmp_path: Path, passphrase: None
) -> None:
    lab = lab_in(tmp_path / "s3", backend_url_of(request, "s3"))
    lab.program(TWENTY)
    assert killed_up(lab, "engine.step.end@8")
    parts = sorted(journal_of(lab))
    middle = lab.objects.get(parts[2])
    lab.objects.delete([parts[2]])
    with pytest.raises(Corrupt, match="a part of the journal is missing"):
        lab.engine().preview(lab.stack())
    lab.objects.put(parts[2], middle)
    other = parts[0].replace(parts[0].rpartition("/")[2].partition(".")[0], "0" * 32)
    lab.objects.put(other, b"")
    with pytest.raises(Corrupt, match="2 runs wrote a journal at the same time"):
        lab.engine().up(lab.stack())
    lab.objects.delete([other, parts[0]])  # as a removal that was killed leaves it
    lab.up()
    assert not journal_of(lab)


def test_a_writer_that_was_given_up_adds_to_no_other_journal(
    request: pytest.FixtureRequest, tmp_path: Path, passphrase: None
) -> None:
    lab = lab_in(tmp_path / "s3", backend_url_of(request, "s3"))
    lab.program("pass")
    files = stack_files(lab.stack())
    stalled, next_one = files.journal, files.journal
    stalled.append(b"1")
    files.journal.remove()  # the next run took the stack over
    next_one.append(b"2")
    stalled.append(b"late")
    assert files.journal.read() == b"2"
    files.journal.remove()
    assert not files.journal.exists() and not journal_of(lab)


def test_a_torn_last_line_is_dropped_and_a_broken_one_before_it_is_refused(lab: Lab) -> None:
    lab.program(TWENTY)
    assert killed_up(lab, "engine.step.end@8")
    journal = lab.checkpoint.with_suffix(".journal")
    whole = journal.read_bytes()
    lines = whole.split(b"\n")
    journal.write_bytes(b"\n".join([lines[0], b"x" + lines[1][1:], *lines[2:]]))
    with pytest.raises(Corrupt, match="line 2 of the journal fails its checksum"):
        lab.engine().preview(lab.stack())
    journal.write_bytes(whole[:-9])
    lab.up()
    assert len(lab.files()) == 20


def test_the_journal_of_another_checkpoint_is_not_applied(any_lab: Lab) -> None:
    any_lab.up('File("a")')
    any_lab.program(TWENTY)
    assert killed_up(any_lab, "engine.step.end@8")
    any_lab.objects.put(CHECKPOINT, any_lab.objects.get(CHECKPOINT).replace(b'"metadata"', b' "metadata"'))
    with pytest.raises(Conflict, match="changed after a run of this engine was killed"):
        any_lab.engine().up(any_lab.stack())


def test_the_cli_engine_takes_the_journal_over_before_the_cli_reads(any_lab: Lab) -> None:
    from deployer.engine.cli.engine import _take_over_journal

    any_lab.program(TWENTY)
    assert killed_up(any_lab, "engine.step.end@8")
    _take_over_journal(any_lab.stack())
    check_state(any_lab)
    assert len([doc for doc in any_lab.resources() if doc["type"] == "files:index:File"]) >= 8


def test_the_lock_of_a_killed_run_is_taken_over(any_lab: Lab) -> None:
    any_lab.program('File("a")')
    assert killed_up(any_lab, "engine.step.begin@1")
    assert len(any_lab.objects.list("locks")) == 1
    any_lab.up()


def fresh(lab: Lab, folder: Path) -> Lab:
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text((lab.dir / "Pulumi.yaml").read_text())
    assert PRELUDE and os.environ["PULUMI_CONFIG_PASSPHRASE"]
    return Lab(folder)
