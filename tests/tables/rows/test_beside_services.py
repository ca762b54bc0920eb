"""What services and repairs make of rows that were changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.compact import compact_table
from deployer.services.restore import restore_tables
from deployer.services.restore.planning import preview_restore_at
from deployer.tables.maintenance.collect.garbage import collect_garbage
from deployer.tables.rows.delete import delete_rows
from deployer.tables.rows.merging.merge import merge_rows
from deployer.tables.rows.update import update_rows
from tests.tables.lakes import Lake, flights, sorted_rows
from tests.tables.rows.test_delete import differences, filled, opened
from tests.tables.verify.test_rebuild import lose, rebuild


def change(lake: Lake) -> None:
    delete_rows(opened(lake), "flight < 300", job_id="d")
    update_rows(opened(lake), "carrier = 'AA'", {"delay": 7}, job_id="u")
    merge_rows(opened(lake), flights(40, 280), job_id="m")


def rows_of(lake: Lake) -> list[dict[str, Any]]:
    return sorted_rows(lake.open().scan().to_table())


def test_compact_drops_what_was_deleted(lake: Lake) -> None:
    filled(lake)
    change(lake)
    before = rows_of(lake)
    compact_table(lake.root, "air.flights", {"target_rows": 1000})
    assert rows_of(lake) == before and differences(lake) == []
    assert not any(fragment.metadata.deletion_file for fragment in lake.open().dataset().get_fragments())
    clean_table(lake.root, "air.flights", {"older_than": "0h"})
    assert rows_of(lake) == before and differences(lake) == []


def test_a_restore_undoes_changes_and_their_jobs(lake: Lake) -> None:
    filled(lake)
    before, version = rows_of(lake), lake.open().opened.state.lance_version
    change(lake)
    planned = preview_restore_at(lake.store, lake.root, opened(lake).entry, str(version))
    restore_tables(lake.store, lake.root, [planned])
    assert rows_of(lake) == before and not {"d", "u", "m"} & set(lake.open().opened.state.jobs)
    assert delete_rows(opened(lake), "flight < 300", job_id="d").rows > 0
    assert differences(lake) == []


def test_a_lost_state_is_rebuilt_with_the_changes(lake: Lake) -> None:
    filled(lake)
    change(lake)
    state = lake.open().opened.state
    lose(lake)
    rebuild(lake)
    found = lake.open().opened.state
    assert [*found.files] == [*state.files]
    assert {job: replace(each, at=0) for job, each in found.jobs.items()} == {
        job: replace(each, at=0) for job, each in state.jobs.items()
    }
    assert delete_rows(opened(lake), "true", job_id="d").already_done


def test_deletion_files_that_no_version_has_are_garbage(lake: Lake) -> None:
    table = filled(lake)
    table.dataset().get_fragment(0).delete_rows([1])  # as by a process that was killed
    table_id = table.entry.table_id
    found = collect_garbage(lake.store, lake.root, table_id, now=1 << 40, dry_run=True)
    assert found.files == 1
    change(lake)
    assert collect_garbage(lake.store, lake.root, table_id, now=1 << 40).files == 1
    assert differences(lake) == []


@pytest.mark.parametrize("where", ["carrier = 'UA'", "flight < 300"])
def test_leaves_are_split_as_before(lake: Lake, where: str) -> None:
    from deployer.tables.layout.partitions.split import split_leaves

    filled(lake)
    delete_rows(opened(lake), where)
    split_leaves(lake.store, lake.root, opened(lake).entry.table_id, 30)
    before = rows_of(lake)
    update_rows(opened(lake), "delay > 50", {"delay": 1}, job_id="u")
    assert len(rows_of(lake)) == len(before) and differences(lake) == []
