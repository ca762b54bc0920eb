"""Programs and what becomes of them: each case is one program after another on the same stack."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from deployer.engine import PlanResult, StepFinished, StepStarted, UpResult
from deployer.errors import EngineFailed
from tests.engine.conftest import Lab

TWO = """
a = File("a", content="hello")
b = File("b", content=a.size.apply(lambda size: f"a has {size}"))
pulumi.export("path", b.path)
"""
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def ops(result: PlanResult | UpResult) -> dict[str, str]:
    return {operation.name: operation.op for operation in result.operations if operation.name != "demo-dev"}


@pytest.mark.parametrize("plugin", [False, True], ids=["in-process", "plugin"])
def test_two_resources_are_previewed_created_and_then_left_alone(lab: Lab, plugin: bool) -> None:
    if plugin:
        lab.install_plugin()
    plan = lab.preview(TWO)
    assert ops(plan) == {"a": "create", "b": "create"}
    assert lab.log() == []
    result = lab.up()
    assert lab.files() == {"a.txt": "hello", "b.txt": "a has 5"}
    assert result.outputs["path"] == str(lab.root / "files" / "b.txt")
    assert ops(lab.preview()) == {"a": "same", "b": "same"}
    assert ops(lab.up()) == {"a": "same", "b": "same"}
    assert lab.log() == ["create a.txt", "create b.txt"]


@dataclass(frozen=True)
class Change:
    """A second program over a first one: the operations, what the provider did, the files that are there then."""

    before: str
    after: str
    ops: dict[str, str]
    log: list[str]
    files: dict[str, str]


CHANGES = {
    "nothing": Change('File("a", content="1")', 'File("a", content="1")', {"a": "same"}, [], {"a.txt": "1"}),
    "update": Change(
        'File("a", content="1")', 'File("a", content="2")', {"a": "update"}, ["update a.txt"], {"a.txt": "2"}
    ),
    "add": Change(
        'File("a", content="1")',
        'File("a", content="1"); File("b", content="2")',
        {"a": "same", "b": "create"},
        ["create b.txt"],
        {"a.txt": "1", "b.txt": "2"},
    ),
    "delete": Change(
        'File("a", content="1"); File("b", content="2")',
        'File("a", content="1")',
        {"a": "same", "b": "delete"},
        ["delete b.txt"],
        {"a.txt": "1"},
    ),
    "delete dependents first": Change(
        'a = File("a"); b = File("b", opts=Opts(depends_on=[a])); File("c", opts=Opts(depends_on=[b]))',
        "pass",
        {"a": "delete", "b": "delete", "c": "delete"},
        ["delete c.txt", "delete b.txt", "delete a.txt"],
        {},
    ),
    "replace, create first": Change(
        'a = File("a", content="1"); File("b", content=a.path)',
        'a = File("a", content="1", kind="md"); File("b", content=a.path)',
        {"a": "replace", "b": "update"},
        ["create a.md", "update b.txt", "delete a.txt"],
        {"a.md": "1", "b.txt": "ROOT/files/a.md"},
    ),
    "replace, delete first": Change(
        'a = File("a", content="1"); File("b", content=a.path)',
        'a = File("a", content="1", kind="md", opts=Opts(delete_before_replace=True)); File("b", content=a.path)',
        {"a": "replace", "b": "update"},
        ["delete a.txt", "create a.md", "update b.txt"],
        {"a.md": "1", "b.txt": "ROOT/files/a.md"},
    ),
    "replace, delete first, with what it forces": Change(
        'a = File("a", kind="k1"); b = File("b", kind=a.kind, content="b"); File("c", content=b.content)',
        """
a = File("a", kind="k2", opts=Opts(delete_before_replace=True))
b = File("b", kind=a.kind, content="b")
File("c", content=b.content)
""",
        {"a": "replace", "b": "replace", "c": "same"},
        ["delete b.k1", "delete a.k1", "create a.k2", "create b.k2"],
        {"a.k2": "", "b.k2": "b", "c.txt": "b"},
    ),
    "replace on changes": Change(
        'File("a", content="1", opts=Opts(delete_before_replace=True))',
        'File("a", content="2", opts=Opts(delete_before_replace=True, replace_on_changes=["content"]))',
        {"a": "replace"},
        ["delete a.txt", "create a.txt"],
        {"a.txt": "2"},
    ),
    "ignore changes": Change(
        'File("a", content="1")',
        'File("a", content="2", opts=Opts(ignore_changes=["content"]))',
        {"a": "same"},
        [],
        {"a.txt": "1"},
    ),
    "retain on delete": Change(
        'File("a", content="1", opts=Opts(retain_on_delete=True))', "pass", {"a": "delete"}, [], {"a.txt": "1"}
    ),
    "deleted with": Change(
        'a = File("a"); File("b", opts=Opts(deleted_with=a, depends_on=[a]))',
        "pass",
        {"a": "delete", "b": "delete"},
        ["delete b.txt", "delete a.txt"],
        {},
    ),
    "alias": Change(
        'File("a", content="1")',
        'File("z", name="a", content="1", opts=Opts(aliases=[pulumi.Alias(name="a")]))',
        {"z": "same"},
        [],
        {"a.txt": "1"},
    ),
    "alias by URN": Change(
        'File("a", content="1")',
        'File("z", name="a", content="1", opts=Opts(aliases=["urn:pulumi:dev::demo::files:index:File::a"]))',
        {"z": "same"},
        [],
        {"a.txt": "1"},
    ),
    "component renamed, its child with it": Change(
        """
class Pair(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("demo:index:Pair", name, None, opts)
        File(f"{name}-one", name="one", content="1", opts=Opts(parent=self))
Pair("p")
""",
        """
class Pair(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("demo:index:Pair", name, None, opts)
        File(f"{name}-one", name="one", content="1", opts=Opts(parent=self))
Pair("q", Opts(aliases=[pulumi.Alias(name="p")]))
""",
        {"q": "same", "q-one": "same"},
        [],
        {"one.txt": "1"},
    ),
    "replace with another": Change(
        'a = File("a", kind="k1"); File("b", opts=Opts(replace_with=[a], delete_before_replace=True))',
        'a = File("a", kind="k2"); File("b", opts=Opts(replace_with=[a], delete_before_replace=True, depends_on=[a]))',
        {"a": "replace", "b": "replace"},
        ["create a.k2", "delete b.txt", "create b.txt", "delete a.k1"],
        {"a.k2": "", "b.txt": ""},
    ),
    "replacement trigger": Change(
        'File("a", opts=Opts(replacement_trigger="1", delete_before_replace=True))',
        'File("a", opts=Opts(replacement_trigger="2", delete_before_replace=True))',
        {"a": "replace"},
        ["delete a.txt", "create a.txt"],
        {"a.txt": ""},
    ),
}


@pytest.mark.thinned(8, only="-plugin", to="full")  # how a plugin is called is the same for all
@pytest.mark.parametrize("plugin", [False, True], ids=["in-process", "plugin"])
@pytest.mark.parametrize("case", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_program(lab: Lab, case: Change, plugin: bool) -> None:
    if plugin:
        lab.install_plugin()
    lab.up(case.before)
    lab.clear_log()
    assert ops(lab.preview(case.after)) == case.ops
    assert lab.log() == []
    assert ops(lab.up()) == case.ops
    assert lab.log() == case.log
    assert lab.files() == {
        name: text.replace("ROOT", str(lab.root)).replace("\n", "") for name, text in case.files.items()
    }
    assert set(ops(lab.preview()).values()) <= {"same"}


def test_previews_show_what_is_not_known_yet(lab: Lab) -> None:
    plan = lab.preview(TWO)
    b = next(operation for operation in plan.operations if operation.name == "b")
    assert b.new_inputs["content"] == UNKNOWN
    assert plan.outputs["path"] == UNKNOWN


def test_a_preview_of_an_update_names_the_properties(lab: Lab) -> None:
    lab.up('File("a", content="1", kind="x")')
    (a,) = lab.preview('File("a", content="2", kind="y")').changes
    assert (a.op, a.detailed_diff, a.replace_keys) == (
        "replace",
        {"content": "update", "kind": "update-replace"},
        ("kind",),
    )
    assert (a.old_inputs["content"], a.new_inputs["content"]) == ("1", "2")


def test_targets_leave_the_rest_alone(lab: Lab) -> None:
    lab.up('File("a", content="1"); File("b", content="1"); File("c")')
    urn = "urn:pulumi:dev::demo::files:index:File::a"
    program = 'File("a", content="2"); File("b", content="2"); n = File("n"); File("m", content=n.path)'
    lab.up(program, targets=frozenset({urn}))
    assert lab.files() == {"a.txt": "2", "b.txt": "1", "c.txt": ""}
    with pytest.raises(EngineFailed, match=r"skipped, because .*File::n is not among the targets"):
        lab.up('n = File("n"); File("a", content=n.path)', targets=frozenset({urn}))


GROUPED = """
class Group(pulumi.ComponentResource):
    def __init__(self, name, **inputs):
        super().__init__("my:index:Group", name, inputs)

File("a", content="{0}")
group = Group("g", {1})
File("in", Opts(parent=group), content="{0}")
{2}
"""


def test_targets_leave_components_and_what_is_no_longer_declared(lab: Lab) -> None:
    lab.up(GROUPED.format("1", "", 'File("gone")'))
    others = {each["urn"]: each for each in lab.resources() if not each["urn"].endswith("::a")}
    urn = "urn:pulumi:dev::demo::files:index:File::a"
    lab.up(GROUPED.format("2", "colour='red'", 'Group("new")'), targets=frozenset({urn}))
    assert lab.files() == {"a.txt": "2", "in.txt": "1", "gone.txt": ""}
    assert {each["urn"]: each for each in lab.resources() if not each["urn"].endswith("::a")} == others


def test_a_refresh_of_targets_reads_nothing_else(lab: Lab) -> None:
    lab.up('File("a", content="1"); File("b", content="1")')
    for name in ("a", "b"):
        (lab.root / "files" / f"{name}.txt").write_text("changed")
    urn = "urn:pulumi:dev::demo::files:index:File::a"
    [found] = lab.engine().refresh(lab.stack(), targets=frozenset({urn}))
    assert found.urn == urn
    contents = {name: lab.resource(name)["outputs"]["content"] for name in ("a", "b")}
    assert contents == {"a": "changed", "b": "1"}


def test_events_come_in_order_with_times(lab: Lab) -> None:
    lab.up(TWO)
    steps = [event for event in lab.events if isinstance(event, StepStarted | StepFinished) and "File" in event.urn]
    assert [(type(event).__name__, event.urn.rpartition("::")[2]) for event in steps] == [
        ("StepStarted", "a"),
        ("StepFinished", "a"),
        ("StepStarted", "b"),
        ("StepFinished", "b"),
    ]
    assert all(event.seconds > 0 for event in steps if isinstance(event, StepFinished))


def test_independent_resources_are_made_at_the_same_time(lab: Lab) -> None:
    lab.up("\n".join(f'File("f{index}", wait=0.3)' for index in range(4)), parallel=4)
    kinds = [type(event).__name__ for event in lab.events if getattr(event, "urn", "").find("::f") > 0]
    assert kinds[:4] == ["StepStarted"] * 4


@pytest.mark.parametrize("plugin", [False, True], ids=["in-process", "plugin"])
def test_a_failed_step_stops_only_what_needs_it(lab: Lab, plugin: bool) -> None:
    if plugin:
        lab.install_plugin()
    program = """
    a = File("a", content="1", fail="{fail}")
    b = File("b", content=a.size.apply(str))
    File("c", opts=Opts(depends_on=[b]))
    File("d", content="4")
    pulumi.export("size", a.size)
    """
    with pytest.raises(EngineFailed) as failed:
        lab.up(program.format(fail="create"))
    assert "files:index:File::a: RuntimeError: the disk refuses to create a.txt" in str(failed.value) or plugin
    assert "the disk refuses to create a.txt" in str(failed.value)
    assert "Traceback" not in str(failed.value)
    assert "2 more skipped" in str(failed.value)
    assert lab.files() == {"d.txt": "4"}
    assert "pending_operations" not in lab.deployment()
    lab.up(program.format(fail=""))
    assert sorted(lab.files()) == ["a.txt", "b.txt", "c.txt", "d.txt"]
    assert lab.log().count("create d.txt") == 1


def test_a_failed_update_leaves_the_resource_and_its_dependents_as_they_were(lab: Lab) -> None:
    lab.up('a = File("a", content="1"); File("b", content=a.content)')
    before = {doc["urn"]: doc for doc in lab.resources()}
    with pytest.raises(EngineFailed, match="refuses to update"):
        lab.up('a = File("a", content="2", fail="update"); File("b", content=a.content)')
    assert {doc["urn"]: doc for doc in lab.resources()} == before
    assert lab.files() == {"a.txt": "1", "b.txt": "1"}


def test_what_a_failed_replacement_still_uses_is_not_deleted(lab: Lab) -> None:
    lab.up('a = File("a", kind="k1"); File("b", content=a.path)')
    with pytest.raises(EngineFailed, match="refuses to update"):
        lab.up('a = File("a", kind="k2"); File("b", content=a.path, fail="update")')
    assert sorted(lab.files()) == ["a.k1", "a.k2", "b.txt"]
    lab.up('a = File("a", kind="k2"); File("b", content=a.path)')
    assert sorted(lab.files()) == ["a.k2", "b.txt"]


def test_check_failures_are_all_reported(lab: Lab) -> None:
    for run in (lab.preview, lab.up):
        with pytest.raises(EngineFailed) as failed:
            run('File("a", colour="red"); File("b", size_limit=3); File("c")')
        assert "colour: no such property" in str(failed.value)
        assert "size_limit: no such property" in str(failed.value)


def test_a_protected_resource_is_neither_deleted_nor_replaced(lab: Lab) -> None:
    protected = 'a = File("a", kind="{kind}", opts=Opts(protect=True)); File("b", opts=Opts(depends_on=[a]))'
    lab.up(protected.format(kind="k1"))
    with pytest.raises(EngineFailed, match="protected"):
        lab.up(protected.format(kind="k2"))
    with pytest.raises(EngineFailed, match="protected"):
        lab.up("pass")
    assert sorted(lab.files()) == ["a.k1"]
    with pytest.raises(EngineFailed, match="protected"):
        lab.destroy()
    lab.up("pass", allow_destroy=frozenset({"a"}))
    assert lab.files() == {}


def test_import_takes_over_what_exists(lab: Lab) -> None:
    lab.root.joinpath("files").mkdir(parents=True)
    lab.root.joinpath("files", "old.txt").write_text("was here")
    program = 'File("a", name="old", content="was here", opts=Opts(import_="old.txt"))'
    assert ops(lab.preview(program)) == {"a": "import"}
    assert ops(lab.up()) == {"a": "import"}
    assert lab.resource("a")["importID"] == "old.txt"
    assert lab.log() == []
    assert ops(lab.up()) == {"a": "same"}
    lab.up('File("a", name="old", content="new")')
    assert lab.files() == {"old.txt": "new"}


def test_import_brings_a_difference_in_line(lab: Lab) -> None:
    lab.root.joinpath("files").mkdir(parents=True)
    lab.root.joinpath("files", "old.txt").write_text("was here")
    assert ops(lab.up('File("a", name="old", content="now", opts=Opts(import_="old.txt"))')) == {"a": "import"}
    assert lab.files() == {"old.txt": "now"}
    with pytest.raises(EngineFailed, match=r"nothing with the id 'none\.txt' to import"):
        lab.up('File("b", name="none", opts=Opts(import_="none.txt"))')


def test_read_looks_without_owning(lab: Lab) -> None:
    lab.root.joinpath("files").mkdir(parents=True)
    lab.root.joinpath("files", "there.txt").write_text("text")
    program = """
    found = File("found", opts=Opts(id="there.txt"))
    File("copy", content=found.content)
    """
    assert ops(lab.up(program)) == {"found": "read", "copy": "create"}
    assert lab.resource("found")["external"] is True
    lab.up("pass")
    assert lab.files() == {"there.txt": "text"}
    with pytest.raises(EngineFailed, match=r"nothing with the id 'gone\.txt' to read"):
        lab.up('File("found", opts=Opts(id="gone.txt"))')


def test_invoke_asks_the_provider(lab: Lab) -> None:
    lab.up('File("a", content="told")')
    result = lab.up(
        """
        File("a", content="told")
        pulumi.export("said", pulumi.runtime.invoke("files:index:content", {"id": "a.txt"}).value["content"])
        """
    )
    assert result.outputs["said"] == "told"


def test_refresh_finds_what_changed_and_what_is_gone(lab: Lab) -> None:
    program = 'File("a", content="1"); File("b", content="2")'
    lab.up(program)
    (lab.root / "files" / "a.txt").write_text("edited")
    (lab.root / "files" / "b.txt").unlink()
    plan = lab.preview()
    assert ops(plan) == {"a": "update", "b": "create"}
    assert {operation.name: operation.op for operation in plan.drift} == {"a": "refresh", "b": "delete"}
    drift = lab.engine().refresh(lab.stack(), dry_run=True)
    assert {operation.name: operation.op for operation in drift} == {"a": "refresh", "b": "delete"}
    lab.up(program)
    assert lab.files() == {"a.txt": "1", "b.txt": "2"}
    assert ops(lab.preview(refresh=False)) == {"a": "same", "b": "same"}


def test_destroy_leaves_nothing(lab: Lab) -> None:
    lab.up(TWO)
    assert lab.destroy().summary["delete"] == 3
    assert lab.files() == {}
    assert lab.resources() == []
    assert lab.log()[-2:] == ["delete b.txt", "delete a.txt"]
    lab.up()
    assert sorted(lab.files()) == ["a.txt", "b.txt"]


def test_explicit_providers_have_their_own_configuration(lab: Lab) -> None:
    program = """
    class Files(pulumi.ProviderResource):
        def __init__(self, name, root):
            super().__init__("files", name, {{"root": root}})
    other = Files("other", {root!r})
    File("a", content="1")
    File("b", content="2", opts=Opts(provider=other))
    """
    elsewhere = lab.dir / "elsewhere"
    lab.up(program.format(root=str(elsewhere)))
    assert sorted(lab.files()) == ["a.txt"]
    assert [file.name for file in (elsewhere / "files").iterdir()] == ["b.txt"]
    assert ops(lab.preview()) == {"a": "same", "b": "same", "other": "same"}
    moved = lab.dir / "moved"  # the provider's diff of `root` asks for a replacement
    assert ops(lab.up(program.format(root=str(moved)))) == {"a": "same", "b": "replace", "other": "replace"}
    assert list((elsewhere / "files").iterdir()) == []
    assert [file.name for file in (moved / "files").iterdir()] == ["b.txt"]
    assert len(lab.resources()) == 5
