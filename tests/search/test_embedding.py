"""Texts are searched by the declared embedding function, which runs only where its caller trusts it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deployer.errors import InvalidInput, Refused
from deployer.platform.isolation.trusted_functions import VARIABLE, TrustedFunctions
from deployer.specs.model import Embedding
from deployer.table import connect
from tests.search.articles import WORDS
from tests.search.conftest import EMBEDDING, Opened
from tests.search.hash_embedding import vectors
from tests.tables.indexed import SCHEMA, SIZE, Indexed, rows

TRUSTED = (EMBEDDING.function,)


def add_embedded(written: Indexed, count: int = 60) -> list[str]:
    """Adds rows whose vectors are those of their texts."""
    given = rows(count)
    texts: list[str] = given["remark"].to_pylist()
    made = pa.FixedSizeListArray.from_arrays(pa.array(vectors(texts).ravel()), SIZE)
    place = given.schema.get_field_index("embedding")
    written.lake.ingest(written.lake.file(given.set_column(place, SCHEMA.field("embedding"), made)))
    return texts


def test_a_text_is_searched_by_its_vector(opened: Opened) -> None:
    written, table = opened(WORDS, embedding=EMBEDDING, trusted=TRUSTED)
    texts = add_embedded(written)
    search = table.search("Delayed by fog 6").limit(1)
    assert search.query_type == "vector"
    [found] = search.to_list()
    assert (found["remark"], found["_distance"]) == (texts[6], pytest.approx(0, abs=1e-4))
    assert table.search("delayed", query_type="fts").query_type == "fts"
    both = table.search("delayed by fog 6", query_type="hybrid").limit(3).to_list()
    assert both[0]["remark"] == texts[6]
    assert table.search(np.zeros(SIZE)).query_type == "vector"


def test_a_function_that_is_not_trusted_does_not_run(opened: Opened, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "hostile.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    written, table = opened(WORDS, embedding=replace(EMBEDDING, function="hostile:vectors"), trusted=TRUSTED)
    add_embedded(written)
    for query_type in ("auto", "vector"):
        with pytest.raises(Refused, match=r"embedding function `hostile:vectors` is named by the lake and not trusted"):
            table.search("delayed", query_type=query_type)
    with pytest.raises(Refused, match=r'connect\(root, trusted_functions=\["hostile:vectors"\]\), --trust-function'):
        table.search("delayed", query_type="hybrid").to_list()
    assert table.search("delayed", query_type="fts").to_list()
    assert "hostile" not in sys.modules


def test_the_environment_trusts_functions(opened: Opened, monkeypatch: Any) -> None:
    monkeypatch.setenv(VARIABLE, f"other.module:f, {EMBEDDING.function}")
    written, table = opened(embedding=EMBEDDING)
    add_embedded(written)
    assert table.search("landed by fog 4").limit(1).to_list()[0]["remark"] == "landed by fog 4"


@pytest.mark.parametrize("name", ["os.system", "os:", ":f", "a b:c", "os:system('x')", "", "a" * 300 + ":f"])
def test_what_is_no_name_of_a_function_cannot_be_trusted(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"is not the name of a function; write package.module:function"):
        TrustedFunctions.allowed([name])
    with pytest.raises(InvalidInput, match="the trusted functions are one string"):
        TrustedFunctions.allowed("os:system")


FUNCTIONS = {
    "raises": ("def f(texts): raise KeyError('no model')", r"`words:f` failed: KeyError: 'no model'; correct the func"),
    "too many": ("def f(texts): return [[0.0] * 16] * 2", r"did not return one vector .*: it has 2 items for 1 text"),
    "nothing": ("def f(texts): return None", r"did not return one vector .*: it is of type NoneType"),
    "dimension": ("def f(texts): return [[1.0]]", r"the query vector has 1 values, and the vectors .* have 16"),
    "NaN": ("def f(texts): return [[float('nan')] * 16]", r"16 of 16 values of the query vector are null, NaN"),
    "a dict": ("def f(texts): return {'a': 1}", r"`words:f` failed|did not return one vector"),
    "no function": ("f = 5", r"`words:f` is not a function; correct the name in the spec"),
    "missing": ("g = 5", r"`words:f`: the module has no `f`"),
    "import fails": ("import no_such_package", r"cannot be imported: ModuleNotFoundError: .*; install its package"),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_a_function_that_does_not_work_is_named(opened: Opened, tmp_path: Path, monkeypatch: Any, case: str) -> None:
    code, message = FUNCTIONS[case]
    (tmp_path / "words.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "words", raising=False)
    _, table = opened(embedding=replace(EMBEDDING, function="words:f"), trusted=("words:f",))
    with pytest.raises(InvalidInput, match=message):
        table.search("delayed")


def test_another_column_of_vectors_has_no_embedding_function(opened: Opened) -> None:
    _, table = opened(embedding=EMBEDDING, trusted=TRUSTED)
    with pytest.raises(InvalidInput, match="column 'remark' of type string does not hold vectors"):
        table.search("delayed", "remark")


def test_an_embedding_of_a_column_that_others_dropped_is_named(opened: Opened) -> None:
    written, table = opened(WORDS, embedding=EMBEDDING, trusted=TRUSTED)
    add_embedded(written)
    written.dataset.drop_columns(["embedding"])
    with pytest.raises(InvalidInput, match="the declared embedding names column 'embedding', which the table does not"):
        table.search("delayed")
    assert table.search("delayed", query_type="fts").to_list()


def test_a_declared_embedding_is_planned_applied_and_read(opened: Opened) -> None:
    written, _ = opened(embedding=EMBEDDING)
    assert written.changes() == ()
    other = Embedding("models:words", "carrier", "embedding")
    written.spec = replace(written.spec, embedding=other)
    assert [change.kind for change in written.changes()] == ["ChangeEmbedding"]
    written.apply()
    assert written.changes() == ()
    written.spec = replace(written.spec, embedding=None)
    written.apply()
    assert written.changes() == ()
    with connect(written.lake.root) as connection, pytest.raises(InvalidInput, match="no embedding function"):
        connection.open_table("flights").search("delayed", query_type="vector")
