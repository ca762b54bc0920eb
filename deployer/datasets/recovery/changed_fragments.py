"""The fragments that commits may have changed, from Lance's records of the commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.datasets.lance_transactions import transaction_of

if TYPE_CHECKING:
    import lance

#: Operations of Lance that name each fragment in which they change anything.
_NAMING = frozenset({"Append", "Delete", "Update", "DataReplacement"})


def changed_fragments(dataset: lance.LanceDataset, since: int) -> set[int] | None:
    """Returns the fragments of version `since` in which the commits after it may have changed anything; fragments that
    they removed or added are not included. Returns None where this is unknown."""
    found = set[int]()
    for version in range(since + 1, int(dataset.version) + 1):
        operation = getattr(transaction_of(dataset, version), "operation", None)
        if type(operation).__name__ not in _NAMING:
            return None
        found.update(int(each.id) for each in getattr(operation, "updated_fragments", None) or ())
        found.update(int(each.fragment_id) for each in getattr(operation, "replacements", None) or ())
    return found
