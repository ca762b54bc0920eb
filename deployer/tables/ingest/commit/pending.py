"""An append whose fragments are written and not committed, as a value that another process can commit too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.lance_transactions import lance_release
from deployer.datasets.writer import Written
from deployer.state.log.requirements import schema_fingerprint

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Pending:
    """All that a commit needs: its mark, Lance's own JSON of each fragment, the rows' schema and dataset."""

    info: CommitMetadata
    fragments: tuple[Mapping[str, Any], ...]
    schema: str  #: fingerprint
    dataset: int

    @staticmethod
    def of(
        job_id: str, kind: str, written: Sequence[Written], schema: bytes, dataset: int, sources: str = ""
    ) -> Pending:
        info = CommitMetadata(
            job_id, kind, sum(each.rows for each in written), tuple(each.marked for each in written), sources
        )
        return Pending(info, tuple(each.metadata for each in written), schema_fingerprint(schema), dataset)

    @property
    def job_id(self) -> str:
        return self.info.job_id

    def field_ids(self) -> set[int]:
        return {field for each in self.fragments for file in each["files"] for field in file["fields"]}

    def to_bytes(self) -> bytes:
        document = {
            "format": FORMAT,
            "lance": lance_release(),
            "mark": self.info.to_properties(),
            "fragments": self.fragments,
            "schema": self.schema,
            "dataset": self.dataset,
        }
        return json.dumps(document).encode()

    @staticmethod
    def from_bytes(body: bytes) -> Pending | None:
        """None for what another version of this library or of Lance wrote, which alone can commit it."""
        try:
            document = json.loads(body)
            info = CommitMetadata.of(document["mark"])
            if (document["format"], document["lance"]) != (FORMAT, lance_release()) or info is None:
                return None
            return Pending(info, tuple(document["fragments"]), document["schema"], document["dataset"])
        except (ValueError, KeyError, TypeError):
            return None
