"""Indexes as a user has them: declared, previewed, applied, loaded and described."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cli.conftest import Deployer
from tests.cli.test_apply import dataset_of, edit
from tests.projects import table

INDEXES = """indexes:
  - {columns: [id], kind: btree}
  - name: words
    columns: [word]
    kind: inverted
    language: German
  - columns: [place]
    kind: ivf_pq
    metric: cosine
    num_partitions: 2
    num_sub_vectors: 2
"""


def load(project: Path, deployer: Deployer, start: int, count: int, *options: str) -> object:
    places = range(start, start + count)
    vectors = pa.array([float(i * 31 % 97 + part) for i in places for part in range(4)], pa.float32())
    words = [f"word{i % 7}" for i in places]
    rows = pa.table(
        {"id": pa.array(places, pa.int64()), "word": words, "place": pa.FixedSizeListArray.from_arrays(vectors, 4)}
    )
    pq.write_table(rows, project / "rows.parquet")
    ran = deployer("ingest", "air.flights", str(project / "rows.parquet"), "--json", *options)
    assert ran.code == 0
    return ran.json["indexes"]


def declare(project: Path, indexes: str) -> None:
    text = table("flights", "word: string", "place: vector<float32, 4>", more=indexes)
    (project / "specs" / "flights.yaml").write_text(text, encoding="utf-8")


def test_indexes_from_a_spec_to_searches(project: Path, deployer: Deployer) -> None:
    declare(project, INDEXES)
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    shown = deployer("describe", "air.flights").out
    assert "waits for 256" in shown
    assert load(project, deployer, 0, 100) == {"built": [], "updated": ["id_btree", "words"], "failure": ""}
    assert load(project, deployer, 100, 400, "--no-indexes") == {"built": [], "updated": [], "failure": ""}
    assert deployer("preview", "--exit-code").code == 0
    told = {each["name"]: each for each in deployer("describe", "air.flights", "--json").json["indexes"]}
    assert [(each["status"], each["indexed_rows"], each["unindexed_rows"]) for each in told.values()] == [
        ("ready", 100, 400),
        ("pending", 0, 500),
        ("ready", 100, 400),
    ]
    done = {"built": ["place_ivf_pq"], "updated": ["id_btree", "words"], "failure": ""}
    assert load(project, deployer, 500, 10) == done
    assert deployer("preview", "--exit-code").code == 0


def test_a_changed_parameter_is_previewed_with_its_line_and_applied(project: Path, deployer: Deployer) -> None:
    declare(project, INDEXES)
    deployer("up", "--yes")
    load(project, deployer, 0, 300)
    edit(project / "specs" / "flights.yaml", "language: German", "language: French")
    edit(project / "specs" / "flights.yaml", "num_partitions: 2", "num_partitions: 4")
    edit(project / "specs" / "flights.yaml", "  - {columns: [id], kind: btree}\n", "")
    [resource] = deployer("preview", "--json").json["resources"]
    assert [(change["kind"], change["risk"], change["cause"]) for change in resource["changes"]] == [
        ("DropIndex", "safe", "specs/flights.yaml:9:1"),
        ("RebuildIndex", "safe", "specs/flights.yaml:17:5"),
        ("RebuildIndex", "safe", "specs/flights.yaml:13:5"),
    ]
    assert "300 rows are indexed; none is written" in resource["changes"][1]["why"]
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    [vectors, words] = dataset_of(project, "flights").describe_indices()
    assert (vectors.name, words.details["language"]) == ("place_ivf_pq", "French")


def test_an_index_follows_its_columns_rename_and_preview_says_so(project: Path, deployer: Deployer) -> None:
    declare(project, INDEXES)
    deployer("up", "--yes")
    load(project, deployer, 0, 300)
    [dataset] = (project / "lakes" / "demo" / "air").glob("flights-*.lance")
    files = sorted((dataset / "_indices").iterdir())
    for before, after in {
        "{name: place,": "{name: gate, renamed_from: place,",
        "columns: [place]": "columns: [gate]",
        "{name: word,": "{name: term, renamed_from: word,",
        "columns: [word]": "columns: [term]",
    }.items():
        edit(project / "specs" / "flights.yaml", before, after)
    [resource] = deployer("preview", "--json").json["resources"]
    assert [(change["risk"], change["summary"], change["why"]) for change in resource["changes"]] == [
        ("safe", "rename column word → term", "index words follows"),
        ("safe", "rename column place → gate", "index place_ivf_pq follows"),
        ("safe", "rename index place_ivf_pq → gate_ivf_pq", "its files stay, nothing is built"),
    ]
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    assert deployer("drift").code == 0
    assert sorted((dataset / "_indices").iterdir()) == files
    told = {each["name"]: each["columns"] for each in deployer("describe", "air.flights", "--json").json["indexes"]}
    assert told == {"gate_ivf_pq": ["gate"], "id_btree": ["id"], "words": ["term"]}


def test_an_index_dropped_by_plain_lance_is_built_again(project: Path, deployer: Deployer) -> None:
    declare(project, INDEXES)
    deployer("up", "--yes")
    load(project, deployer, 0, 300)
    dataset_of(project, "flights").drop_index("words")
    [resource] = deployer("preview", "--json").json["resources"]
    assert [change["summary"] for change in resource["changes"]] == [
        "create index words: inverted on word (language German)"
    ]
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    assert len(dataset_of(project, "flights").describe_indices()) == 3
