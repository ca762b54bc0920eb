"""What COMPACT would rewrite of a table by the table's own options: pure, from the table's state."""

from __future__ import annotations

from collections.abc import Mapping

from deployer.live.services import fault_of
from deployer.services.compact.options import CompactOptions
from deployer.services.compact.table_planning import plan_table
from deployer.services.rewriting.tasks import Piece, Sizes, Task, is_small
from deployer.specs.serialized.specs import storage_from_json
from deployer.state.model.entities import TableState


def own_plan(state: TableState, deleted: Mapping[int, int]) -> tuple[Task, ...]:
    """The tasks of a run that begins now. `deleted` has how many rows of each fragment are deleted, where any are.

    The files count as parts of the same indexes: a run joins those parts first.
    """
    files = sorted(state.files, key=lambda file: file.fragment_id)
    pieces = [Piece(file, deleted.get(file.fragment_id, 0)) for file in files]
    return plan_table(state, pieces, own_sizes(state))


def small_files(state: TableState) -> int:
    """How many files COMPACT calls small."""
    sizes = own_sizes(state)
    return sum(is_small(Piece(file), sizes) for file in state.files)


def merged_files(state: TableState) -> int:
    """Small files that COMPACT would rewrite: it leaves one that is alone in its leaf.

    What only the dataset tells, such as deleted rows, does not count.
    """
    sizes = own_sizes(state)
    small = {file.fragment_id for file in state.files if is_small(Piece(file), sizes)}
    return sum(fragment in small for task in own_plan(state, {}) for fragment in task.fragments)


def own_sizes(state: TableState) -> Sizes:
    """By the options of the table's COMPACT, or the defaults where the table has none that can run."""
    service = state.services.get("COMPACT")
    usable = service is not None and not service.unsafe_raw and not fault_of(service)
    options = CompactOptions.of(service.options if service is not None and usable else {})
    return options.sizes(storage_from_json(state.properties.storage).max_rows_per_file)
