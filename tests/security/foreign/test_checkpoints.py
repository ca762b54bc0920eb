"""F12 and F25: what Pulumi's state of a stack says may be anybody's, in the backend and in a file to import."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from deployer.engine.providers.plugin_search import find_plugin
from deployer.engine.values import checkpoint_shape, values
from deployer.engine.values.checkpoint_shape import fault_of_deployment
from deployer.errors import NotFound, Refused
from tests.cli.conftest import Deployer

Deployment = dict[str, Any]


def checkpoint(project: Path) -> Path:
    return project / ".pulumi" / "stacks" / "lakes" / "dev.json"


def change(project: Path, edit: Callable[[Deployment], object]) -> None:
    """The stack's checkpoint with a change, as somebody who can write to the backend would make it."""
    file = checkpoint(project)
    document = json.loads(file.read_text())
    edit(document["checkpoint"]["latest"])
    file.write_text(json.dumps(document))


def of_provider(package: str, **inputs: Any) -> list[dict[str, Any]]:
    """A provider of a package, and a resource that it has to be started for."""
    urn = f"urn:pulumi:dev::lakes::pulumi:providers:{package}::default"
    provider = {"urn": urn, "custom": True, "id": "1", "type": f"pulumi:providers:{package}", "inputs": inputs}
    thing = {
        "urn": "urn:pulumi:dev::lakes::evil:index:X::x",
        "custom": True,
        "id": "2",
        "type": "evil:index:X",
        "provider": f"{urn}::1",
    }
    return [provider, thing]


@pytest.fixture
def trap(tmp_path: Path) -> Callable[[Path], Path]:
    """Makes an executable that leaves a file behind when it runs, and gives where that file would be."""

    def make(file: Path) -> Path:
        ran = tmp_path / "ran"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\ntouch {ran}\n")
        file.chmod(0o755)
        return ran

    return make


@pytest.mark.parametrize(
    "package", ["a/evil", "../evil", "/opt/evil", "..", ".", "a\\evil", "Evil", "a b", "-x", "a\n", ""]
)
def test_a_package_that_is_not_a_name_is_refused_before_anything_is_started(
    project: Path, deployer: Deployer, trap: Callable[[Path], Path], package: str
) -> None:
    """F12: `pulumi:providers:a/evil` started `pulumi-resource-a/evil` of the project."""
    ran = trap(project / "pulumi-resource-a" / "evil")
    change(project, lambda deployment: deployment["resources"].extend(of_provider(package)))
    for command in (("preview",), ("up", "--yes"), ("drift",), ("destroy", "--yes")):
        said = deployer(*command)
        assert said.code == 1 and "error: " in said.err and "Traceback" not in said.err, command
        assert "not a Pulumi checkpoint: " in said.err
    assert not ran.exists()
    exported = {"version": 3, "deployment": json.loads(checkpoint(project).read_text())["checkpoint"]["latest"]}
    Path("evil.json").write_text(json.dumps(exported))
    before = checkpoint(project).read_bytes()
    said = deployer("stack", "import", "evil.json", "--yes")
    assert said.code == 1 and "not an export of a stack: resource " in said.err
    assert checkpoint(project).read_bytes() == before


def test_a_plugin_of_the_checkout_is_not_started_because_it_is_on_path(
    project: Path, deployer: Deployer, trap: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F12: a pull request brings the file, and the state, or a state file, the name."""
    ran = trap(project / "bin" / "pulumi-resource-evil")
    change(project, lambda deployment: deployment["resources"].extend(of_provider("evil")))
    for entry in ("bin", str(project / "bin"), "."):
        monkeypatch.setenv("PATH", os.pathsep.join([entry, os.environ["PATH"]]))
    said = deployer("preview")
    assert said.code == 1 and "the provider plugin pulumi-resource-evil is not installed" in said.err
    assert "Pulumi's state names the provider evil: its plugin was not found" in said.err
    assert not ran.exists()


def test_plugins_are_found_beside_python_on_path_and_where_the_project_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    project = checkout / "lake"
    project.mkdir(parents=True)
    (checkout / ".git").mkdir()
    for folder in (tmp_path / "tools", checkout / "tools", project / "bin"):
        folder.mkdir()
        (folder / "pulumi-resource-x").write_text("#!/bin/sh\n")
        (folder / "pulumi-resource-x").chmod(0o755)
    monkeypatch.chdir(project)
    link = tmp_path / "link"
    link.symlink_to(checkout / "tools")
    monkeypatch.setenv("PATH", os.pathsep.join(["bin", "", str(checkout / "tools"), str(link)]))
    with pytest.raises(NotFound, match="outside of the project"):
        find_plugin("x", {}, project)
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], str(tmp_path / "tools")]))
    assert find_plugin("x", {}, project) == tmp_path / "tools" / "pulumi-resource-x"
    assert find_plugin("x", {"x": project / "bin"}, project) == project / "bin" / "pulumi-resource-x"
    with pytest.raises(Refused, match="is not the name of a provider's package"):
        find_plugin("../x", {}, project)


def test_what_is_started_for_the_state_is_said(
    project: Path, deployer: Deployer, trap: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap(tmp_path / "tools" / "pulumi-resource-other")
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], str(tmp_path / "tools")]))
    change(project, lambda deployment: deployment["resources"].extend(of_provider("other")))
    said = deployer("preview")
    started = tmp_path / "tools" / "pulumi-resource-other"
    assert f"Pulumi's state names the provider other: {started} is started" in said.err
    assert said.code == 1 and "Traceback" not in said.err  # it is no provider, and ends


def first(deployment: Deployment) -> dict[str, Any]:
    found: dict[str, Any] = deployment["resources"][-1]
    return found


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


#: Checkpoints that no engine writes, by what is wrong with them.
ODD: Mapping[str, Callable[[Deployment], object]] = {
    "resources_are_no_list": lambda d: d.update(resources={"a": 1}),
    "a_resource_is_a_text": lambda d: d["resources"].append("x"),
    "a_resource_is_null": lambda d: d["resources"].append(None),
    "no_urn": lambda d: first(d).pop("urn"),
    "urn_is_a_number": lambda d: first(d).update(urn=5),
    "urn_is_short": lambda d: first(d).update(urn="urn:pulumi:dev::lakes"),
    "urn_has_escapes": lambda d: first(d).update(urn=first(d)["urn"] + "\x1b[2J"),
    "urn_twice": lambda d: d["resources"].append(dict(first(d))),
    "type_is_another": lambda d: first(d).update(type="aws:s3:Bucket"),
    "type_is_a_list": lambda d: first(d).update(type=["x"]),
    "id_is_an_object": lambda d: first(d).update(id={}),
    "custom_is_a_text": lambda d: first(d).update(custom="yes"),
    "protect_is_a_number": lambda d: first(d).update(protect=1),
    "inputs_are_a_list": lambda d: first(d).update(inputs=[1]),
    "outputs_are_a_text": lambda d: first(d).update(outputs="x"),
    "parent_is_no_urn": lambda d: first(d).update(parent="../.."),
    "provider_is_a_number": lambda d: first(d).update(provider=1),
    "provider_is_no_reference": lambda d: first(d).update(provider="x"),
    "dependencies_are_a_text": lambda d: first(d).update(dependencies="abc"),
    "dependencies_are_numbers": lambda d: first(d).update(dependencies=[1]),
    "property_dependencies_are_a_list": lambda d: first(d).update(propertyDependencies=[]),
    "aliases_are_an_object": lambda d: first(d).update(aliases={}),
    "timeouts_are_texts": lambda d: first(d).update(customTimeouts={"create": "long"}),
    "secret_without_anything": lambda d: first(d).update(inputs={"a": {values.SIG: values.SECRET}}),
    "secret_that_is_no_json": lambda d: first(d).update(inputs={"a": {values.SIG: values.SECRET, "plaintext": "{"}}),
    "pending_is_an_object": lambda d: d.update(pending_operations={"a": 1}),
    "pending_of_no_kind": lambda d: d.update(pending_operations=[{"type": "eating", "resource": first(d)}]),
    "pending_without_resource": lambda d: d.update(pending_operations=[{"type": "creating"}]),
    "secrets_are_a_text": lambda d: d.update(secrets_providers="x"),
    "manifest_is_a_list": lambda d: d.update(manifest=[1]),
    "nested_deep": lambda d: first(d).update(inputs={"a": deep(200)}),
    "nested_very_deep": lambda d: first(d).update(inputs={"a": deep(900)}),
    "a_number_that_is_none": lambda d: first(d).update(inputs={"a": float("nan")}),
    "half_a_character": lambda d: first(d).update(inputs={"a": "\ud800"}),
    "version_is_a_path": lambda d: d["resources"].extend(of_provider("other", version="../../x")),
    "version_is_a_number": lambda d: d["resources"].extend(of_provider("other", version=1)),
}


@pytest.mark.thinned(4, to="full")
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_checkpoint_ends_in_words(project: Path, deployer: Deployer, odd: str) -> None:
    change(project, ODD[odd])
    exported = {"version": 3, "deployment": json.loads(checkpoint(project).read_text())["checkpoint"]["latest"]}
    Path("odd.json").write_text(json.dumps(exported))
    imported = deployer("stack", "import", "odd.json", "--yes")
    assert imported.code == 1 and imported.err.startswith("error: odd.json: not an export of a stack: "), imported.err
    for command in (("preview",), ("up", "--yes"), ("drift",), ("doctor",), ("stack", "export", "out.json", "--force")):
        ran = deployer(*command)
        assert ran.code == 1 and "Traceback" not in ran.err, (command, ran.err)
        assert "not a Pulumi checkpoint: " in ran.err + ran.out, (command, ran.err)
    assert deployer("tables").code == 0


@pytest.mark.parametrize(
    "content",
    {
        "empty": b"",
        "cut_off": b"{",
        "a_list": b"[]",
        "null": b"null",
        "no_checkpoint": b'{"version": 3}',
        "version_is_a_text": b'{"version": "3", "checkpoint": {}}',
        "no_utf8": b"\xff\xfe",
        "nested": b"[" * 100_000,
        "checkpoint_is_a_list": b'{"version": 3, "checkpoint": []}',
        "deployment_is_a_text": b'{"version": 3, "checkpoint": {"latest": "x"}}',
        "a_long_number": b"1" * 5000,
        "a_member_twice": b'{"version": 3, "version": 3, "checkpoint": {}}',
    }.items(),
    ids=lambda case: case[0],
)
def test_a_file_that_is_no_checkpoint_ends_in_words(
    project: Path, deployer: Deployer, content: tuple[str, bytes]
) -> None:
    """F25: `stack import` of deep JSON ended in a RecursionError."""
    checkpoint(project).write_bytes(content[1])
    Path("odd.json").write_bytes(content[1])
    for command in (("preview",), ("up", "--yes"), ("stack", "import", "odd.json", "--yes")):
        ran = deployer(*command)
        assert ran.code == 1 and ran.err.startswith("error: ") and "Traceback" not in ran.err, (command, ran.err)


def test_a_lakes_own_resources_with_odd_inputs_end_in_words(project: Path, deployer: Deployer) -> None:
    """The shape is right, and what the provider reads from it is not."""

    def edit(deployment: Deployment) -> None:
        for resource in deployment["resources"]:
            if resource["type"] == "lake:index:Table" and resource["urn"].endswith("planes"):
                resource["inputs"]["columns"] = "[" * 2000
                resource["outputs"] = {"database": 5}

    change(project, edit)
    for command in (("preview",), ("drift",), ("up", "--yes")):
        ran = deployer(*command)
        assert "Traceback" not in ran.err and "KeyError" not in ran.err, (command, ran.err)


def entry(**document: Any) -> bytes:
    text = json.dumps(document, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x} {text}\n".encode()


RESOURCE = {"urn": "urn:pulumi:dev::lakes::lake:index:Table::air.x", "type": "lake:index:Table", "custom": True}


@pytest.mark.parametrize(
    "lines",
    {
        "no_object": b"%08x []\n" % zlib.crc32(b"[]"),
        "no_resource": entry(begin=1, kind="creating"),
        "odd_kind": entry(begin=1, kind="x", resource=RESOURCE),
        "odd_resource": entry(begin=1, kind="creating", resource={"urn": 1}),
        "odd_key": entry(end=None, drop=["../x"]),
        "odd_put": entry(end=None, put={"b1": []}),
        "nothing": entry(x=1),
        "keeps_what_is_not_there": entry(begin=1, kind="creating", resource=RESOURCE) + entry(end=1, keep="b99"),
        "positions": entry(end=1, resolves=["x"]),
        "deep": entry(end=1, add={**RESOURCE, "inputs": {"a": deep(200)}}),
    }.items(),
    ids=lambda case: case[0],
)
def test_an_odd_journal_ends_in_words(project: Path, deployer: Deployer, lines: tuple[str, bytes]) -> None:
    from deployer.engine.persistence.journal import fingerprint

    head = entry(journal=1, base=fingerprint(checkpoint(project).read_bytes()))
    checkpoint(project).with_name("dev.journal").write_bytes(head + lines[1])
    for command in (("preview",), ("up", "--yes")):
        ran = deployer(*command)
        assert ran.code == 1 and "Traceback" not in ran.err and "journal" in ran.err, (command, ran.err)


def test_the_signatures_are_those_of_values() -> None:
    assert (checkpoint_shape.SIG, checkpoint_shape.SECRET) == (values.SIG, values.SECRET)


def test_what_engines_write_is_taken(project: Path) -> None:
    deployment = json.loads(checkpoint(project).read_text())["checkpoint"]["latest"]
    assert fault_of_deployment(deployment) is None
    assert fault_of_deployment(None) is None
