"""F18: tags, branches and manifests that Lance cannot read are told in words by each command that asks for them."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import lance
import pytest

from tests.cli.conftest import Deployer
from tests.projects import REPOSITORY
from tests.security.foreign.lake_damage import location_of
from tests.security.foreign.test_unreadable_tables import in_words

LARGEST = 2**64 - 1  # Lance names manifests by the distance from it

FILES = {
    "a tag of no version": ("_refs/tags/x.json", b'{"version":1e99}'),
    "a tag that is a list": ("_refs/tags/x.json", b"[]"),
    "a tag that is cut off": ("_refs/tags/x.json", b'{"vers'),
    "a tag of deployer's": ("_refs/tags/deployer-savepoint-before.json", b"[]"),
    "a tag whose name is a path": ("_refs/tags/..%2f..%2fx.json", b'{"version":1,"manifestSize":1}'),
    "a branch whose name is a path": (
        "_refs/branches/..%2f..%2fx.json",
        b'{"parentVersion":1,"createAt":1,"manifestSize":1}',
    ),
    "a branch that is cut off": ("_refs/branches/x.json", b"{"),
    "an empty manifest": ("_versions/0.manifest", b""),
    "an older manifest": (f"_versions/{LARGEST - 1:020}.manifest", b"rubbish"),
    "a newer manifest": (f"_versions/{LARGEST - 99:020}.manifest", b"rubbish" * 30),
}
COMMANDS = (
    ("tables",),
    ("preview",),
    ("drift",),
    ("drift", "--json"),
    ("history", "planes"),
    ("history", "planes", "--json"),
    ("query", "planes", "--at", "2"),
    ("query", "planes", "--at", "2030-01-01T00:00:00Z"),
    ("describe", "planes"),
    ("report", "--html", "page.html"),
    ("state", "verify"),
    ("savepoint", "create", "more"),
    ("savepoint", "create", "again", "--table", "air.planes"),
    ("savepoint", "delete", "more"),
    ("table", "gc", "planes"),
    ("service", "run", "planes", "CLEAN", "-o", "older_than=0d"),
    ("service", "run", "planes", "AUTOSAVEPOINT"),
    ("ingest", "planes", "planes.csv"),
    ("restore", "before", "--yes"),
    ("savepoint", "delete", "before"),
    ("up", "--yes"),
)


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("drifted", [False, True], ids=["as applied", "drifted"])
@pytest.mark.parametrize(("path", "content"), FILES.values(), ids=FILES.keys())
def test_every_command_ends_in_words(path: str, content: bytes, drifted: bool, root: Path, deployer: Deployer) -> None:
    """F18: `history`, `drift`, `savepoint` and `restore` ended in a traceback of Lance's."""
    assert deployer("savepoint", "create", "before").code == 0
    location = location_of(root, "planes")
    if drifted:  # `drift` looks through the versions for who did it
        lance.dataset(location).alter_columns({"path": "id", "name": "number"})
        lance.dataset(location).add_columns({"extra": "1"})
        lance.dataset(location).create_scalar_index("number", "BTREE")
    file = location / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    codes = {command: in_words(deployer(*command)).code for command in COMMANDS}
    assert set(codes.values()) <= {0, 1, 2, 3} and 1 in codes.values(), codes
    assert in_words(deployer("describe", "flights")).code == 0


def test_the_message_names_the_folder(root: Path, deployer: Deployer) -> None:
    tags = location_of(root, "planes") / "_refs" / "tags"
    tags.mkdir(parents=True)
    (tags / "x.json").write_text("[]")
    told = in_words(deployer("savepoint", "create", "more")).err
    assert f"air/{location_of(root, 'planes').name}{os.sep}_refs/tags: the tags of the dataset cannot be read" in told
    assert deployer("savepoint", "list", "--json").json["savepoints"] == []
    (tags / "x.json").unlink()
    assert deployer("savepoint", "create", "more").code == 0


def test_only_one_module_asks_lance_for_them() -> None:
    """F18: `deployer.datasets.storage.refs` has the errors; a call elsewhere would end in Lance's own."""
    of_tags = {"list", "list_ordered", "get_version", "create", "update", "delete"}
    found = set[str]()
    for path in sorted((REPOSITORY / "deployer").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(attr="versions")):
                    found.add(path.name)
                case ast.Attribute(value=ast.Attribute(attr="tags" | "branches"), attr=method) if method in of_tags:
                    found.add(path.name)
    assert found == {"refs.py"}
