"""What people really have: a LanceDB directory grown by tiny writes, taken over and put in order by three commands."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tests.cli.conftest import Deployer

WRITES = 120


@pytest.fixture
def grown(project: Path) -> Path:
    """The dataset `lakes/demo/docs.lance`, of as many files and versions as there were writes."""
    (project / "specs" / "flights.yaml").unlink(missing_ok=True)
    for path in (project / "specs").glob("*.yaml"):
        if "kind: Table" in path.read_text(encoding="utf-8"):
            path.unlink()
    location = project / "lakes" / "demo" / "docs.lance"
    dataset = None
    for number in range(WRITES):
        rows = pa.table({"id": [2 * number, 2 * number + 1], "text": [f"text {number}", None]})
        mode = "create" if dataset is None else "append"
        dataset = lance.write_dataset(rows, dataset or str(location), mode=mode, data_storage_version="2.1")
    assert dataset is not None
    dataset.delete("id = 7")
    return location


def files(location: Path) -> list[Path]:
    return [path for path in location.rglob("*") if path.is_file()]


def test_it_is_imported_compacted_and_cleaned_with_the_same_rows(
    grown: Path, project: Path, deployer: Deployer
) -> None:
    before = lance.dataset(grown).to_table()
    assert len(lance.dataset(grown).versions()) == WRITES + 1 and len(files(grown)) > 2 * WRITES
    size = sum(path.stat().st_size for path in files(grown))
    assert deployer("import", "--all", "lakes/demo").code == 0
    assert deployer("preview", "--exit-code").code == 0
    compacted = deployer("service", "run", "main.docs", "COMPACT", "--json").json
    assert (compacted["before"]["files"], compacted["after"]["files"]) == (WRITES, 1)
    assert compacted["work"]["deleted_rows"] == 1
    cleaned = deployer("service", "run", "main.docs", "CLEAN", "-o", "older_than=0h", "--json").json
    assert cleaned["before"]["versions"] > WRITES and cleaned["after"]["versions"] == 1
    dataset = lance.dataset(grown)
    assert dataset.to_table() == before  # the same rows, in their order
    assert len(dataset.versions()) == 1 and len(dataset.get_fragments()) == 1
    assert len(files(grown)) < 10 and sum(path.stat().st_size for path in files(grown)) < size / 10
    assert deployer("state", "verify").code == 0
    assert deployer("preview", "--exit-code").code == 0
    assert deployer("drift").code == 0
