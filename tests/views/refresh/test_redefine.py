"""Another query for a view: computed beside it, swapped in by one commit."""

from __future__ import annotations

import pytest

from deployer.errors import InvalidInput
from deployer.tables.read.table import open_table
from deployer.views.definition import ViewDefinition, view_definition
from deployer.views.refresh.redefine import Redefinition, redefine_view
from deployer.views.refresh.results import RefreshJobResult
from tests.views.refresh.conftest import COUNTS, Views, rows


def redefine(views: Views, query: str, job_id: str = "again") -> RefreshJobResult:
    return redefine_view(Redefinition(views.open("late"), ViewDefinition(query), job_id, views.queries))


@pytest.mark.parametrize(
    "query",
    [COUNTS, "SELECT id, delay * 2 AS twice FROM air.flights", "SELECT id, delay FROM air.flights WHERE id < 0"],
)
def test_another_query_takes_the_place(views: Views, query: str) -> None:
    views.view()
    views.refresh()
    views.view(COUNTS.replace("air.flights", "air.late"), "counts")
    views.refresh("counts")
    done = redefine(views, query)
    state = views.open("late").state
    definition = view_definition(state.properties)
    assert done.mode == "full" and definition is not None and definition.query == query and state.dataset == 2
    assert redefine(views, query).already_done
    assert views.plan().mode == "none"
    views.add(rows(300, 350))
    assert views.refresh().mode == "incremental"
    found = views.rows()
    views.refresh(full=True)
    assert found == views.rows()
    assert open_table(views.lake.root, "late").history()[0].kind == "refresh"
    if "carrier" in query:
        assert views.refresh("counts").mode in ("full", "incremental")
        assert sum(row["flights"] for row in views.rows("counts")) == 4


def test_what_cannot_be_a_query_changes_nothing(views: Views) -> None:
    views.view()
    views.refresh()
    then = views.rows()
    for query, words in (
        ("SELECT id FROM air.late", "would read itself: air.late → air.late"),
        ("SELECT nothing FROM air.flights", "nothing"),
    ):
        with pytest.raises(InvalidInput, match=words):
            redefine(views, query)
    assert views.rows() == then and views.plan().mode == "none"
