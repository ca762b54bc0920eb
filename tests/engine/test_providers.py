"""Providers: default and explicit ones, their configuration, options that reach them, and their ends."""

from __future__ import annotations

from typing import Any

import pytest

from deployer.engine import Diagnostic, choose_engine
from deployer.errors import EngineFailed
from tests.engine.conftest import Lab
from tests.engine.provider_files import FileProvider
from tests.engine.sdk_client import SdkClient
from tests.engine.test_steps import ops

FILES = """
class Files(pulumi.ProviderResource):
    def __init__(self, name, opts=None, **config):
        super().__init__("files", name, config, opts)
"""
BOTH = pytest.mark.parametrize("plugin", [False, True], ids=["in-process", "plugin"])


def configured(lab: Lab) -> list[str]:
    return [line for line in (lab.root / "log").read_text().splitlines() if line.startswith("configure")]


@BOTH
def test_a_default_provider_takes_the_stacks_configuration(lab: Lab, plugin: bool) -> None:
    if plugin:
        lab.install_plugin()
    (lab.dir / "Pulumi.dev.yaml").write_text("config:\n  files:colours: blue\n")
    lab.up('File("a")')
    assert configured(lab) == ["configure colours"]
    assert lab.resource("default")["inputs"] == {"colours": "blue"}
    (lab.dir / "Pulumi.dev.yaml").write_text("config:\n  files:colours: red\n")
    assert ops(lab.up()) == {"a": "same"}
    assert lab.resource("default")["inputs"] == {"colours": "red"}


@BOTH
def test_a_provider_that_refuses_its_configuration_fails_its_resources_only(lab: Lab, plugin: bool) -> None:
    if plugin:
        lab.install_plugin()
    program = FILES + 'bad = Files("bad", colour="blue")\nFile("a", opts=Opts(provider=bad)); File("b")'
    for run in (lab.preview, lab.up):
        with pytest.raises(EngineFailed, match="bad: colour: files have none"):
            run(program)
    assert sorted(lab.files()) == ["b.txt"]


def test_a_default_provider_that_fails_is_reported_for_each_of_its_resources(lab: Lab) -> None:
    (lab.dir / "Pulumi.dev.yaml").write_text("config:\n  files:colour: blue\n")
    with pytest.raises(EngineFailed, match=r"1 resource failed \(2 more skipped.*default: colour: files have none"):
        lab.up('File("a"); File("b")')
    assert lab.files() == {}


def test_versions_and_origins_make_default_providers_of_their_own(lab: Lab) -> None:
    lab.up(
        """
        File("a", opts=Opts(version="1.2.3-rc.1"))
        File("b", opts=Opts(version="2.0.0", plugin_download_url="https://example.org/p"))
        """
    )
    names = [doc["urn"].rpartition("::")[2] for doc in lab.resources() if doc["type"] == "pulumi:providers:files"]
    assert sorted(names) == ["default_1_2_3_rc_1", "default_2_0_0_https___example.org_p"]
    inputs = lab.resource("default_2_0_0_https___example.org_p")["inputs"]
    assert inputs == {"version": "2.0.0", "__internal": {"pluginDownloadURL": "https://example.org/p"}}
    assert ops(lab.preview()) == {"a": "same", "b": "same"}


def test_secret_provider_configuration_stays_secret(lab: Lab) -> None:
    program = FILES + 'p = Files("p", token=pulumi.Output.secret("hush"))\nFile("a", opts=Opts(provider=p))'
    lab.up(program)
    assert "configure token!" in configured(lab)
    assert b"hush" not in lab.checkpoint.read_bytes()
    assert ops(lab.preview()) == {"p": "same", "a": "same"}


def test_a_preview_goes_on_when_a_providers_configuration_is_not_known_yet(lab: Lab) -> None:
    program = (
        FILES + 'a = File("a")\nb = File("b", opts=Opts(provider=Files("p", root=a.path.apply(lambda p: p + ".d"))))'
    )
    assert ops(lab.preview(program)) == {"a": "create", "p": "create", "b": "create"}
    lab.up()
    assert (lab.root / "files" / "a.txt.d" / "files" / "b.txt").exists()
    assert set(ops(lab.preview()).values()) == {"same"}


def test_resources_survive_their_providers_new_configuration(lab: Lab) -> None:
    program = FILES + 'p = Files("p", note="{note}")\nFile("a", opts=Opts(provider=p))'
    lab.up(program.format(note="1"))
    assert ops(lab.up(program.format(note="2"))) == {"p": "update", "a": "same"}
    assert lab.log() == ["create a.txt"]


def test_a_deleted_provider_goes_after_its_resources(lab: Lab) -> None:
    lab.up(FILES + 'p = Files("p")\nFile("a", opts=Opts(provider=p))')
    assert ops(lab.up("pass")) == {"a": "delete", "p": "delete"}
    assert [doc["type"] for doc in lab.resources()] == ["pulumi:pulumi:Stack"]


def test_one_object_takes_one_configuration(lab: Lab) -> None:
    lab.program(FILES + 'File("a"); File("b", opts=Opts(provider=Files("p", note="other")))')
    engine = choose_engine(lab.project(), "embedded", {"files": SdkClient(FileProvider(lab.root))})
    with pytest.raises(EngineFailed, match="configured in two ways"):
        engine.up(lab.stack())


@BOTH
def test_timeouts_reach_the_provider(lab: Lab, plugin: bool) -> None:
    if plugin:
        lab.install_plugin()
    lab.up('File("a", opts=Opts(custom_timeouts=pulumi.CustomTimeouts(create="1h30m")))')
    assert "configure timeout 5400.0" in configured(lab)
    assert lab.resource("a")["customTimeouts"] == {"create": 5400.0}


@BOTH
def test_assets_are_kept_by_their_contents(lab: Lab, plugin: bool) -> None:
    if plugin:
        lab.install_plugin()
    program = 'File("a", source=pulumi.StringAsset({text!r}))'
    lab.up(program.format(text="one"))
    assert lab.resource("a")["inputs"]["source"]["text"] == "one"
    assert len(lab.resource("a")["inputs"]["source"]["hash"]) == 64
    assert ops(lab.preview()) == {"a": "same"}
    assert ops(lab.up(program.format(text="two"))) == {"a": "update"}


def test_references_to_resources_and_component_outputs_are_kept(lab: Lab) -> None:
    lab.up(
        """
        class Pair(pulumi.ComponentResource):
            def __init__(self, name, opts=None):
                super().__init__("demo:index:Pair", name, {"wish": 1}, opts)
                one = File(f"{name}-one", opts=Opts(parent=self))
                File(f"{name}-two", needs=one, opts=Opts(parent=self))
                self.register_outputs({"path": one.path})
        Pair("p")
        """
    )
    pair, two = lab.resource("p"), lab.resource("p-two")
    assert pair["outputs"] == {"path": str(lab.root / "files" / "p-one.txt")}
    assert two["urn"] == "urn:pulumi:dev::demo::demo:index:Pair$files:index:File::p-two"
    assert two["parent"] == pair["urn"]
    assert two["inputs"]["needs"]["urn"] == lab.resource("p-one")["urn"]
    assert two["propertyDependencies"] == {"needs": [lab.resource("p-one")["urn"]]}
    assert ops(lab.preview()) == {"p": "same", "p-one": "same", "p-two": "same"}


def test_a_plugin_that_dies_fails_its_step_and_says_how(lab: Lab) -> None:
    lab.install_plugin()
    with pytest.raises(EngineFailed, match="pulumi-resource-files ended with exit code 7: out of luck"):
        lab.up('File("a", fail="die")')
    said: list[Any] = [event for event in lab.events if isinstance(event, Diagnostic)]
    assert any(event.message == "out of luck" for event in said)


def test_a_protected_dependent_keeps_what_it_needs_from_being_replaced(lab: Lab) -> None:
    program = """
    a = File("a", kind="{kind}", opts=Opts(delete_before_replace=True))
    File("b", kind=a.kind, opts=Opts(protect=True))
    """
    lab.up(program.format(kind="k1"))
    with pytest.raises(EngineFailed, match="depends on it, would be replaced with it, and is protected"):
        lab.up(program.format(kind="k2"))
    assert sorted(lab.files()) == ["a.k1", "b.k1"]


def test_a_resource_that_is_not_ready_is_kept_and_made_ready_by_the_next_run(lab: Lab) -> None:
    lab.install_plugin("provider_unready")
    program = 'File("a", content=pulumi.Output.secret("hush"), labels=[1, 2]); File("b")'
    assert ops(lab.preview(program)) == {"a": "create", "b": "create"}
    with pytest.raises(EngineFailed, match="created, not ready"):
        lab.up()
    assert (lab.resource("a")["id"], lab.resource("a")["initErrors"]) == ("u-1", ["not ready after 1 s"])
    assert b"hush" not in lab.checkpoint.read_bytes()
    assert ops(lab.preview()) == {"a": "same", "b": "same"}  # a refresh finds it ready by now
    assert ops(lab.up(refresh=False)) == {"a": "update", "b": "update"}
    assert "initErrors" not in lab.resource("a")
    assert ops(lab.up()) == {"a": "same", "b": "same"}
    (a,) = lab.preview('File("a", content="open", labels=[1, 3]); File("b")').changes
    assert (a.detailed_diff, a.not_compared) == ({"labels": "update"}, ("content",))  # that was secret
    lab.destroy()
