"""A persistent map: each change makes a new map that shares nearly all of its data with the map before the change."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from typing import Generic, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")

_GONE = object()  # marks a key that an older layer still holds as removed


class LayeredMap(Mapping[K, V], Generic[K, V]):
    """An immutable map held as layers, each at most half as large as the one below it.

    `changed` costs O(log n) amortised and a look-up O(log n), so that a commit to a table with 100,000 jobs costs
    nearly the same as with ten. The lowest layer may be any mapping, such as one that reads Arrow lazily.
    """

    __slots__ = ("_layers", "_length")

    def __init__(self, base: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        lowest = base if isinstance(base, Mapping) else dict(base)
        self._layers: tuple[Mapping[K, object], ...] = (lowest,) if lowest else ()
        self._length = len(lowest)

    def changed(self, put: Mapping[K, V], removed: Iterable[K] = ()) -> LayeredMap[K, V]:
        """Returns the map after the entries of `put` are added or replaced and the keys in `removed` are removed.

        The map must have all keys in `removed`.
        """
        top: dict[K, object] = dict.fromkeys(removed, _GONE)
        length = self._length - len(top)
        for key, value in put.items():
            length += top.get(key) is _GONE or key not in self
            top[key] = value
        if not top:
            return self
        layers = list(self._layers)
        while layers and 2 * len(top) >= len(layers[-1]):
            top = dict(layers.pop().items()) | top
        if not layers:
            top = {key: value for key, value in top.items() if value is not _GONE}
        after: LayeredMap[K, V] = LayeredMap()
        after._layers, after._length = (*layers, top), length
        return after

    def __getitem__(self, key: K) -> V:
        for layer in reversed(self._layers):
            if key in layer:
                value = layer[key]
                if value is _GONE:
                    break
                return cast(V, value)
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        for layer in reversed(self._layers):
            if key in layer:
                return layer[key] is not _GONE  # type: ignore[index]
        return False

    def _merged(self) -> Mapping[K, V]:
        if len(self._layers) == 1:
            return cast("Mapping[K, V]", self._layers[0])
        merged: dict[K, object] = {}
        for layer in self._layers:
            merged.update(layer.items())
        return cast("Mapping[K, V]", {key: value for key, value in merged.items() if value is not _GONE})

    def __iter__(self) -> Iterator[K]:
        return iter(self._merged())

    # The views that Mapping defines would look up every key again, layer by layer.
    def items(self) -> ItemsView[K, V]:
        return self._merged().items()

    def values(self) -> ValuesView[V]:
        return self._merged().values()

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"LayeredMap({dict(self._merged())!r})"


def layered(mapping: Mapping[K, V]) -> LayeredMap[K, V]:
    """Returns the mapping as a LayeredMap, unchanged if it is one already."""
    return mapping if isinstance(mapping, LayeredMap) else LayeredMap(mapping)
