"""The definitions that computed the values of fragments, where the log lacks them. They are found from commit metadata,
and from what other programs wrote or removed later."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.dataset import Fragment, fragments_of, ids_by_column
from deployer.specs.types.arrow import computed_of
from deployer.state.model.files.computed_by import definitions_of, with_definitions, with_outdated, without_fields

if TYPE_CHECKING:
    import lance

    from deployer.state.model.entities import File


@dataclass(slots=True)
class ComputedFiles:
    """The fragments that received values of columns after the state was recorded."""

    columns: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  #: the result of `ids_by_column`
    inputs: Mapping[int, tuple[int, ...]] = field(
        default_factory=dict
    )  #: the columns that each computed column reads, by id
    texts: dict[int, str] = field(default_factory=dict)  #: by fragment id, in the form of `File`
    left: dict[int, Fragment] = field(default_factory=dict)  #: the fragments as these commits left them

    @staticmethod
    def of(dataset: lance.LanceDataset) -> ComputedFiles:
        ids = {each.name(): each.id() for each in dataset.lance_schema.fields()}
        computed = {each.name: found for each in dataset.schema if (found := computed_of(each)) is not None}
        inputs = {ids[name]: tuple(ids[i] for i in each.inputs if i in ids) for name, each in computed.items()}
        return ComputedFiles(ids_by_column(dataset), inputs)

    def note(
        self,
        dataset: lance.LanceDataset,
        version: int,
        operation: Any,
        info: CommitMetadata,
        held: Mapping[int, File],
        now: Mapping[int, Fragment],
    ) -> None:
        """Notes the values that the commit of `version` gave to fragments. `held` are the fragments with their files;
        `now` is their newest version."""
        groups = getattr(operation, "replacements", None) or ()
        if not groups:
            return
        after = now if version == dataset.version else fragments_of(dataset.checkout_version(version))
        complete = set(info.computed.fragments) if info.computed else set[int]()
        for group in groups:
            number = int(group.fragment_id)
            if number not in held or number not in after:
                continue
            text = self.texts.get(number, held[number].computed)
            written = self._columns_of(group.new_file.fields)
            text = with_outdated(text, self._readers_of(written) - written)
            if info.computed is None:
                text = without_fields(text, written)
            elif number in complete:
                text = with_definitions(text, info.computed.identities)
            self.texts[number], self.left[number] = text, after[number]

    def now(self, file: File, fragment: Fragment, was: Fragment | None, *, is_recorded: bool) -> str:
        """Returns the definitions that computed the fragment's values.

        Columns that other programs wrote or removed since `was` are left out; values whose inputs they wrote are
        outdated. `is_recorded`: the state has the fragment. Where the earlier fragment is unknown, all values may be
        from other programs.
        """
        text = self.texts.get(file.fragment_id, file.computed)
        before = self.left.get(file.fragment_id, was)
        if not text or (before is None and not is_recorded):
            return text
        if before is fragment and definitions_of(text).keys() <= self.columns.keys():
            return text

        def differs(number: int) -> bool:
            ids = self.columns.get(number)
            return ids is None or before is None or before.files_of(ids) != fragment.files_of(ids)

        marked = definitions_of(text)
        gone = [number for number in marked if differs(number)]
        outdated = [number for number in marked if any(map(differs, self.inputs.get(number, ())))]
        return without_fields(with_outdated(text, outdated), gone)

    def _readers_of(self, written: Collection[int]) -> set[int]:
        """Returns the computed columns that read one of these columns."""
        return {column for column, inputs in self.inputs.items() if not set(inputs).isdisjoint(written)}

    def _columns_of(self, written: Iterable[int]) -> set[int]:
        own = set(written)
        return {column for column, ids in self.columns.items() if not own.isdisjoint(ids)}
