"""The rules of a merge for rows that match, and for rows that do not match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from deployer.errors import InvalidInput

WhenMatched = Literal["update", "delete", "ignore"]
WhenNotMatched = Literal["insert", "ignore"]
WhenNotMatchedBySource = Literal["keep", "delete"]


@dataclass(frozen=True, slots=True)
class MergeRules:
    """The actions of a merge.

    `when_matched` applies to source rows whose key the table has, and `when_not_matched` to source rows whose key it
    does not have. `when_not_matched_by_source` applies to rows of the table whose key the source does not have; with
    `where`, only those rows are deleted for which it is true.
    """

    when_matched: WhenMatched = "update"
    when_not_matched: WhenNotMatched = "insert"
    when_not_matched_by_source: WhenNotMatchedBySource = "keep"
    where: str | None = None

    def check(self, address: str) -> None:
        """Raises InvalidInput for an unknown action, and for `where` without a deletion."""
        for name, kinds in (
            ("when_matched", WhenMatched),
            ("when_not_matched", WhenNotMatched),
            ("when_not_matched_by_source", WhenNotMatchedBySource),
        ):
            if (given := getattr(self, name)) not in get_args(kinds):
                known = ", ".join(map(repr, get_args(kinds)))
                raise InvalidInput(f"`{name}` is {given!r}", where=address, remedy=f"give one of {known}")
        if self.where is not None and self.when_not_matched_by_source == "keep":
            raise InvalidInput(
                "a condition limits which rows are deleted that the source does not have, and none are",
                where=address,
                remedy='give when_not_matched_by_source="delete" with it',
            )
