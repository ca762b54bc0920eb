"""The chunks of a dataset as arrays, and the selection of the chunks that a query needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Places = npt.NDArray[np.int64]  #: positions of chunks, ascending
Numbers = npt.NDArray[np.int64]

#: A component that hides earlier values of its entity and of the entities below it. Several of its values can be in
#: effect, so that a query needs all chunks that have one.
CLEAR = "Clear:is_recursive"


@dataclass(frozen=True, slots=True)
class Entries:
    """The data of chunks about one timeline, in the order of the chunks. `place` has the positions of the chunks."""

    place: Places
    first: Numbers
    last: Numbers
    component: Numbers  #: the code of the component, only for entries of the column `last`


class ChunkIndex:
    """The chunks of a dataset, in the order of their sources. Safe for threads."""

    def __init__(self, rows: pa.Table) -> None:
        rows = rows.combine_chunks()
        self.count = int(rows.num_rows)
        self.sources: Numbers = _numbers(rows["source"])
        self.offsets: Numbers = _numbers(rows["offset"])
        self.lengths: Numbers = _numbers(rows["length"])
        self.sizes: Numbers = _numbers(rows["bytes"])
        self.static: npt.NDArray[np.bool_] = rows["static"].to_numpy()
        self.ids: pa.Array = _array(rows["chunk_id"])
        entities = _array(rows["entity"]).dictionary_encode()
        self.entities: Numbers = entities.indices.to_numpy().astype(np.int64)
        self.entity_names: pa.Array = entities.dictionary
        self._ranges, self._last = (_array(rows[name]) for name in ("ranges", "last"))

    def of_sources(self, sources: Numbers) -> Places:
        """Returns the positions of the chunks of some sources."""
        starts = np.searchsorted(self.sources, sources, "left")
        ends = np.searchsorted(self.sources, sources, "right")
        found = [np.arange(start, end) for start, end in zip(starts, ends, strict=True)]
        return np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)

    def of_entities(self, places: Places, names: list[str]) -> Places:
        """Returns the positions, of `places`, of the chunks of the named entities."""
        wanted = set(names)
        codes = [code for code, name in enumerate(self.entity_names.to_pylist()) if name in wanted]
        return places[np.isin(self.entities[places], codes)]

    def needed(self, places: Places, segments: Numbers, timeline: str, first: int, last: int) -> Places:
        """Returns the positions, of `places`, of the chunks that a query of `timeline` from `first` to `last` needs.

        Both times are included. The query needs static chunks and chunks that overlap the range. A latest-at query at
        the start of the range also needs, for each segment, entity and component, the chunks with the last value before
        the range. `segments` has the segment number of each chunk of `places`.
        """
        keep = self.static[places]
        ranges = self._of_timeline(self._ranges_of, timeline, places)
        keep[ranges.place[(ranges.first <= last) & (ranges.last >= first)]] = True
        ends = self._of_timeline(self._last_of, timeline, places)
        before = ends.last < first
        place, component, at = ends.place[before], ends.component[before], ends.last[before]
        keep[_last_of_each(place, (segments[place], self.entities[places][place], component), at)] = True
        keep[place[component == self._clear]] = True
        # A chunk before the range is kept if its manifest does not list the last times of its components.
        bounded = np.zeros(len(places), bool)
        bounded[ends.place] = True
        early = ranges.place[ranges.first < first]
        keep[early[~bounded[early]]] = True
        return places[keep]

    def _of_timeline(self, entries: dict[str, Entries], timeline: str, places: Places) -> Entries:
        """Returns the entries of the chunks at `places`; the `place` of a result is an index into `places`."""
        found = entries.get(timeline)
        if found is None or not len(places):
            none = np.zeros(0, np.int64)
            return Entries(none, none, none, none)
        if len(places) == self.count:
            return found
        low, high = np.searchsorted(found.place, (places[0], places[-1] + 1))
        place = found.place[low:high]
        at = np.searchsorted(places, place)
        at[at == len(places)] = 0
        chosen = places[at] == place
        rest = (each[low:high][chosen] for each in (found.first, found.last, found.component))
        return Entries(at[chosen], *rest)

    @cached_property
    def _clear(self) -> int:
        names = self._components.to_pylist()
        return names.index(CLEAR) if CLEAR in names else -1

    @cached_property
    def _component_codes(self) -> pa.DictionaryArray:
        return _child(self._last, "component").dictionary_encode()

    @property
    def _components(self) -> pa.Array:
        return self._component_codes.dictionary

    @cached_property
    def _ranges_of(self) -> dict[str, Entries]:
        return _by_timeline(self._ranges, _numbers(_child(self._ranges, "first")), None)

    @cached_property
    def _last_of(self) -> dict[str, Entries]:
        return _by_timeline(self._last, None, self._component_codes.indices.to_numpy().astype(np.int64))


def _by_timeline(lists: pa.ListArray, first: Numbers | None, component: Numbers | None) -> dict[str, Entries]:
    """Returns the items of the chunks' lists, grouped by timeline."""
    codes = _child(lists, "timeline").dictionary_encode()
    last = _numbers(_child(lists, "last"))
    place = np.repeat(np.arange(len(lists)), np.diff(lists.offsets.to_numpy()))
    found = dict[str, Entries]()
    numbers = codes.indices.to_numpy()
    for code, name in enumerate(codes.dictionary.to_pylist()):
        chosen = np.flatnonzero(numbers == code)
        ends = last[chosen]
        starts = ends if first is None else first[chosen]
        found[name] = Entries(place[chosen], starts, ends, ends if component is None else component[chosen])
    return found


def _last_of_each(place: Places, keys: tuple[Numbers, ...], at: Numbers) -> Places:
    """Returns, for each key, all places with the greatest time of the key. `at` has the times."""
    if not len(place):
        return place
    order = np.lexsort((at, *keys))
    differs = np.zeros(len(order), bool)
    differs[-1] = True
    for key in keys:
        sorted_key = key[order]
        differs[:-1] |= sorted_key[1:] != sorted_key[:-1]
    ends = np.flatnonzero(differs)
    greatest = np.repeat(at[order][ends], np.diff(ends, prepend=-1))
    chosen: Places = place[order[at[order] == greatest]]
    return chosen


def _array(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


def _child(lists: pa.ListArray, name: str) -> pa.Array:
    return lists.flatten().field(name)


def _numbers(column: pa.Array | pa.ChunkedArray) -> Numbers:
    found: Numbers = column.to_numpy()
    return found
