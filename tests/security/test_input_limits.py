"""Files that are no files, or hold far more than they look: each is refused with an error message, and quickly."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.cost.prices import read_prices
from deployer.engine.project.project import load_yaml
from deployer.errors import Corrupt, DeployerError, InvalidInput, InvalidSpecs
from deployer.plan.saved.file import read_plan
from deployer.platform.files import archives
from deployer.platform.files.reading import MAX_JSON_DEPTH, NotAFile, TooLarge, parse_json, read_limited
from deployer.platform.storage.envelope import FORMAT, MAGIC, digest, seal, unseal
from deployer.platform.storage.objects import LocalObjects
from deployer.policy.load import load_policies
from deployer.specs import load_lake
from deployer.specs.sources import limits
from deployer.specs.yaml import nodes as yaml
from deployer.specs.yaml.nodes import MAX_BYTES, parse_yaml
from deployer.state.transfer.export import read_export
from deployer.tables.ingest.files import dialects, text_blocks
from deployer.tables.ingest.files.find import find_sources
from deployer.tables.ingest.files.model import Format, ReadOptions, Source
from deployer.tables.ingest.files.text_blocks import line_blocks
from deployer.tables.ingest.readers.json import _is_too_deep
from tests.cli.conftest import Deployer, project  # noqa: F401
from tests.projects import INSTANCE, table

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def device(path: Path) -> Path:
    path.symlink_to("/dev/zero")
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    return path


KINDS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "pipe": (pipe, "a pipe"),
    "device": (device, "a device"),
    "folder": (folder, "a folder"),
}
READERS: dict[str, Callable[[Path], object]] = {
    "Pulumi.yaml": load_yaml,
    "plan": lambda path: read_plan(path, deployer="1"),
    "prices": read_prices,
    "export of the state": read_export,
    "source of a load": lambda path: find_sources([str(path)], Format.CSV),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_is_named_and_not_read(name: str, kind: str, tmp_path: Path) -> None:
    """F24: a pipe as a file hung, and a device took all memory."""
    make, words = KINDS[kind]
    if (name, kind) == ("source of a load", "folder"):
        pytest.skip("a folder is a source")
    with pytest.raises(DeployerError, match=f"it is {words} and not a file"):
        READERS[name](make(tmp_path / "input"))


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_specs_that_are_no_file(
    kind: str,
    project: Path,  # noqa: F811
    deployer: Deployer,
) -> None:
    """F24: `deployer:specs: /dev/zero` ended in a MemoryError, a pipe there or for `--specs` hung."""
    make, words = KINDS[kind]
    path = make(project / "input.yaml")
    ran = deployer("validate", "--specs", str(path))
    assert ran.code == 1
    assert f"the file cannot be read: it is {words} and not a file" in ran.err
    for command in (["up", str(path)], ["stack", "import", str(path), "--yes"], ["state", "import", str(path)]):
        ran = deployer(*command)
        assert ran.code == 1, command
        assert f"it is {words} and not a file" in ran.err, command
    checkpoint = project / ".pulumi" / "stacks" / "lakes" / "dev.json"
    checkpoint.parent.mkdir(parents=True)
    make(checkpoint)
    ran = deployer("preview")
    assert ran.code == 1
    assert f"it is {words} and not a file" in ran.err


def test_a_policy_that_is_no_file(tmp_path: Path) -> None:
    """F24: the rules of a branch are read before anything else."""
    (tmp_path / "policies").mkdir()
    pipe(tmp_path / "policies" / "rules.yaml")
    with pytest.raises(InvalidSpecs) as caught:
        load_policies(tmp_path)
    assert [each.what for each in caught.value.problems] == ["the file cannot be read: it is a pipe and not a file"]


HALF = "is half of a character, as JSON writes it, and YAML takes whole ones"
WHOLE = r"write the whole character, or `\U` and the 8 digits of its code"
UNKNOWN = r"is not an escape of YAML; write `\\` for a backslash, or put the text in single quotes"
ESCAPES = {
    r'a: "x\ud83d\ude00"': rf"1:6: `\ud83d` {HALF}; write `\U0001f600` for `\ud83d\ude00`, or the character",
    'a: b\nc: "x\n  \\uDE00"': rf"3:3: `\uDE00` {HALF}; {WHOLE}",
    '\ufeffx: 1\ra: "\\ud83d\\u0041"': rf"2:5: `\ud83d` {HALF}; {WHOLE}",
    r'a: "C:\q"': rf"1:7: `\q` {UNKNOWN}",
    r'a: "\U00110000"': rf"1:5: `\U00110000` {UNKNOWN}",
    'a: "\\u12': rf"1:5: `\u12` {UNKNOWN}",
}


@pytest.mark.parametrize("text", ESCAPES)
def test_an_escape_that_yaml_does_not_have_is_named(text: str) -> None:
    """F25: such a text, as JSON writers make it, was called one that is not closed."""
    parsed = parse_yaml(text.encode(), "f.yaml")
    assert [str(problem) for problem in parsed.problems] == [f"f.yaml:{ESCAPES[text]}"]
    assert parsed.truncated and parsed.documents == ()


def test_a_stored_object_that_is_no_file(tmp_path: Path) -> None:
    """F24: a checkpoint or snapshot that is a link to a device."""
    device(tmp_path / "a.json")
    with pytest.raises(NotAFile):
        LocalObjects(tmp_path).get("a.json")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    """F24: sizes are limited where a file is read."""
    sparse = tmp_path / "large"
    with sparse.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(TooLarge, match="it has more than 1 MiB"):
        read_limited(sparse, 2**20)
    with pytest.raises(InvalidInput, match="it has more than 256 MiB"):
        read_plan(sparse, deployer="1")
    with pytest.raises(InvalidInput, match="it has more than 1 MiB"):
        load_yaml(sparse)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BOMB, "aliases expand to more than 100,000 nodes"),
        (f"a: &a {'x' * 20_000}\nb: [{', '.join(['*a'] * 100)}]\n", "aliases expand to more than 1,000,000 characters"),
        ("a: " + "[" * 200 + "]" * 200, "nested more than 100 deep"),
        ("a: &a [*a]", "an alias refers to a value that contains it"),
        ("a: !!python/object/apply:os.system [id]", "unknown tag"),
        ("a: 1\n---\nb: 2\n", "a second document"),
    ],
)
def test_pulumi_yaml_is_read_with_limits(text: str, says: str, tmp_path: Path) -> None:
    """F24: an alias bomb in `Pulumi.yaml` hung `preview --against`."""
    file = tmp_path / "Pulumi.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=says) as caught:
        load_yaml(file)
    assert str(caught.value.where).startswith(f"{file}:")


def test_pulumi_yaml_is_read_as_before(tmp_path: Path) -> None:
    """F24: what projects have in it means what it meant."""
    file = tmp_path / "Pulumi.yaml"
    file.write_text(
        "name: lake\nruntime: {name: python, options: {virtualenv: .venv}}\nmain: stacks\n"
        "config:\n  deployer:specs: specs\n  n: 5\n  on: true\n  t: 2024-01-02\n# end\t\n",
        encoding="utf-8",
    )
    doc, lines = load_yaml(file)
    assert doc["config"] == {"deployer:specs": "specs", "n": 5, "on": True, "t": "2024-01-02"}
    assert (doc["runtime"]["options"], lines["config"]) == ({"virtualenv": ".venv"}, 4)
    file.write_text("# nothing\n", encoding="utf-8")
    assert load_yaml(file) == ({}, {})


def test_the_alias_bomb_ends_a_command(
    project: Path,  # noqa: F811
    deployer: Deployer,
) -> None:
    """F24: the reproduction."""
    file = project / "Pulumi.yaml"
    file.write_text(file.read_text(encoding="utf-8") + BOMB, encoding="utf-8")
    ran = deployer("preview")
    assert ran.code == 1
    assert "aliases expand to more than 100,000 nodes" in ran.err


@pytest.mark.parametrize(
    "text",
    [
        "d: &d '{long}'\ncolumns: [{repeated}]\n",
        "d: &d {{a: '{long}'}}\ncolumns: [{repeated}]\n",
        "d: &d {{'{long}': 1}}\ncolumns: [{repeated}]\n",
        "d: &d\n  a: '{long}'\ncolumns: [{merged}]\n",
    ],
    ids=["scalar", "in a mapping", "key", "merged"],
)
def test_texts_of_aliases_are_counted_by_their_length(text: str) -> None:
    """F24: one description of 1 MB, which a thousand columns had by an alias, was 1 GB of `--format json`."""
    data = text.format(long="x" * 1000, repeated=", ".join(["*d"] * 1100), merged=", ".join(["{<<: *d}"] * 1100))
    [problem] = parse_yaml(data.encode(), "a.yaml").problems
    assert (problem.rule, problem.what) == ("alias-limit", "aliases expand to more than 1,000,000 characters")


def test_short_texts_of_aliases_are_no_problem() -> None:
    """F24: what people share by aliases is short."""
    data = "d: &d 'a description'\nc: [" + ", ".join(["{a: *d}"] * 5_000) + "]\n"
    assert not parse_yaml(data.encode(), "a.yaml").problems


def test_a_file_has_so_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """F24: two bytes of YAML are a value of 400 bytes of memory; a document of its own is one too."""
    monkeypatch.setattr(yaml, "MAX_VALUES", 1_000)
    for data in (b"a: [" + b"b," * 2_000 + b"b]", b"---\n" * 2_000, b"--- a\n" * 2_000):
        parsed = parse_yaml(data, "a.yaml")
        [problem] = parsed.problems
        assert (problem.rule, problem.what) == ("yaml-limit", "the file has more than 1,000 values")
        assert parsed.truncated


def lake_of(folder: Path, **files: str) -> Path:
    for name, text in {"demo": INSTANCE, **files}.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def rules_of(folder: Path) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSpecs) as caught:
        load_lake(folder, folder)
    return [(problem.rule, problem.what) for problem in caught.value.problems]


def test_variables_expand_to_a_limit(tmp_path: Path) -> None:
    """F24: a variable of 100 kB that is written a hundred times in one text is 10 MB."""
    long = f"kind: Variables\nvariables:\n  long: {{type: string, default: '{'x' * 100_000}'}}\n"
    tables = {f"t{n}": table(f"t{n}", more=f'description: "{" ".join(["${long}"] * 60)}"\n') for n in range(3)}
    assert rules_of(lake_of(tmp_path, variables=long, **tables)) == [
        ("specs-limit", "values of variables come to more than 10,000,000 characters")
    ]


def test_schemas_repeat_texts_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F24: a schema gives its columns' descriptions to every table."""
    monkeypatch.setattr(limits, "MAX_TEXT", 50_000)
    schema = f"kind: Schema\nname: s\ncolumns:\n  - {{name: a, type: string, description: '{'x' * 10_000}'}}\n"
    tables = {f"t{n}": table(f"t{n}").replace("columns:", "schemas: [s]\ncolumns:") for n in range(6)}
    assert rules_of(lake_of(tmp_path, schema=schema, **tables)) == [
        ("specs-limit", "the texts of all tables have more than 50,000 characters")
    ]


def test_specs_are_so_many_files_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F24: many small files are as much as a large one."""
    folder = lake_of(tmp_path, **{f"t{n}": table(f"t{n}") for n in range(6)})
    monkeypatch.setattr(limits, "MAX_FILES", 3)
    assert rules_of(folder) == [("specs-limit", "there are more than 3 spec files")]
    monkeypatch.setattr(limits, "MAX_FILES", 30)
    monkeypatch.setattr(limits, "MAX_TOTAL_BYTES", 400)
    assert rules_of(folder) == [("specs-limit", "the spec files have more than 400 bytes")]
    monkeypatch.setattr(limits, "MAX_TOTAL_BYTES", 2**30)
    monkeypatch.setattr(limits, "MAX_TOTAL_VALUES", 40)
    assert rules_of(folder) == [("specs-limit", "the spec files have more than 40 values")]
    monkeypatch.setattr(limits, "MAX_TOTAL_VALUES", 2**30)
    (folder / "large.yaml").write_bytes(b"#" * (MAX_BYTES + 1))
    assert rules_of(folder) == [("unreadable-file", "the file cannot be read: it has more than 16 MiB")]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [MAX_JSON_DEPTH + 2, 5_000, 200_000])
def test_json_is_so_deep(opening: str, depth: int) -> None:
    """F24: deep JSON ended in a RecursionError."""
    closing = "]" if opening == "[" else "}"
    with pytest.raises(ValueError, match="nested more than 250 deep"):
        parse_json(opening * depth + "1" + closing * depth)
    assert parse_json(opening * 200 + "1" + closing * 200)


def test_deep_json_in_files(tmp_path: Path, project: Path, deployer: Deployer) -> None:  # noqa: F811
    """F24: a plan, an export of a stack, and lines of a load; Arrow's parser ended the process (SIGSEGV)."""
    deep = "[" * 100_000 + "]" * 100_000
    (tmp_path / "deep.json").write_text(deep, encoding="utf-8")
    assert "this is not a valid plan" in deployer("up", str(tmp_path / "deep.json")).err
    ran = deployer("stack", "import", str(tmp_path / "deep.json"), "--yes")
    assert "not an export of a stack: it is nested more than 100 deep" in ran.err
    assert deployer("up", "--yes").code == 0
    (tmp_path / "rows.jsonl").write_text(f'{{"id": 1}}\n{{"id": 2, "b": {deep}}}\n', encoding="utf-8")
    ran = deployer("ingest", "flights", str(tmp_path / "rows.jsonl"), "--ignore-extra", "--missing-as-null")
    assert ran.code == 3
    assert "row 2: the row" in ran.err
    assert "is not JSON: its values are nested more than 250 deep" in ran.err


def test_many_brackets_beside_each_other_are_read() -> None:
    """F24: only depth counts."""
    assert not _is_too_deep(json.dumps({"a": [[1]] * 10_000}).encode())
    assert _is_too_deep(b'{"a":' + b"[" * 6_000)


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_an_export_that_unpacks_to_far_more_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F24: 3 MB of ZIP with 3 GB inside ended in a MemoryError."""
    bomb = zipped(tmp_path / "bomb.zip", {"manifest.json": b"{}", "a/entries.jsonl": b"\0" * 20 * 2**20})
    with pytest.raises(InvalidInput, match=r"its members have more than 16 MiB unpacked, 250 times"):
        read_export(bomb)
    monkeypatch.setattr(archives, "MEMBER_BYTES", 2**20)
    with pytest.raises(InvalidInput, match=r"its member 'a/entries.jsonl' has more than 1 MiB unpacked"):
        read_export(bomb)
    monkeypatch.setattr(archives, "MOST_MEMBERS", 1)
    with pytest.raises(InvalidInput, match=r"it has more than 1 members"):
        read_export(bomb)


def test_a_member_that_lies_about_its_size_is_read_to_what_it_says(tmp_path: Path) -> None:
    """F24: the sizes that are checked are those that are read."""
    path = zipped(tmp_path / "a.zip", {"a": b"\0" * 2**20})
    data = path.read_bytes()
    size = (2**20).to_bytes(4, "little")
    assert data.count(size) == 2
    path.write_bytes(data.replace(size, (10).to_bytes(4, "little")))
    with archives.open_archive(path) as archive, pytest.raises(zipfile.BadZipFile):
        archives.member_digest(archive, "a", 16)


def test_a_stored_body_that_grows_too_much_is_corrupt() -> None:
    """F24: a megabyte in the state could become a gigabyte of memory."""
    payload = zlib.compress(b"\0" * 40 * 2**20, 9)
    with pytest.raises(Corrupt, match="entry 1: its body has more than 16,777,216 bytes, or is cut off"):
        unseal(MAGIC + bytes([FORMAT, 1]) + digest(payload) + payload, "entry 1")
    cut = payload[:100]
    with pytest.raises(Corrupt, match="is cut off"):
        unseal(MAGIC + bytes([FORMAT, 1]) + digest(cut) + cut, "entry 1")
    document = json.dumps([{"fragment": n, "partition": "root"} for n in range(100_000)]).encode()
    assert unseal(seal(document), "entry 1") == document


@pytest.mark.parametrize("compressed", [False, True])
def test_a_line_is_so_long(compressed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """F24: a compressed line of some gigabytes was held in memory."""
    monkeypatch.setattr(text_blocks, "LONGEST_LINE", 6 * 2**20)
    data = b"a\nb\n" + b"x" * 12 * 2**20
    stream = io.BytesIO(gzip.compress(data)) if compressed else io.BytesIO(data)
    opened = pa.input_stream(stream, compression="gzip" if compressed else None)
    with pytest.raises(InvalidInput, match=r"rows.csv: line 3 is longer than 6 MiB"):
        list(line_blocks(opened, "rows.csv"))


def test_blocks_are_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """F24: lines that are longer than a block come whole."""
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 4)
    data = b"a\nbbbbbbbbbbb\nc\n\nd"
    assert b"".join(line_blocks(io.BytesIO(data), "x")) == data
    assert all(block.endswith(b"\n") for block in list(line_blocks(io.BytesIO(data), "x"))[:-1])


def test_a_header_is_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F24: a first line without an end was read whole."""
    monkeypatch.setattr(dialects, "LONGEST_HEADER", 1000)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x" * 2**20))
    source = Source(str(tmp_path / "a.csv.gz"), Format.CSV, "a.csv.gz", True)
    with pytest.raises(InvalidInput, match="the header is longer than 1,000 characters"):
        dialects.with_dialects([source], ReadOptions())


def test_a_file_that_says_no_size_is_read_to_its_end() -> None:
    assert b"VmRSS" in read_limited(Path("/proc/self/status"), MAX_BYTES)
    with pytest.raises(TooLarge):
        read_limited(Path("/proc/self/status"), 10)
