"""A layered map is a dict whose versions all live on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deployer.state.model.persistent_map import LayeredMap

KEYS = st.integers(0, 30)


@given(st.data())
def test_it_behaves_as_a_dict_and_versions_do_not_disturb_each_other(data: st.DataObject) -> None:
    versions: list[tuple[LayeredMap[int, int], dict[int, int]]] = [(LayeredMap(), {})]
    for number in range(data.draw(st.integers(0, 12))):
        layered, model = data.draw(st.sampled_from(versions))
        removed = data.draw(st.lists(st.sampled_from(sorted(model)), unique=True)) if model else []
        put = data.draw(st.dictionaries(KEYS, st.just(number), max_size=6))
        after = {key: value for key, value in model.items() if key not in removed} | put
        versions.append((layered.changed(put, removed), after))
    for layered, model in versions:
        assert layered == model
        assert len(layered) == len(model)
        assert list(layered.values()) == [layered[key] for key in layered]
        assert [layered.get(key) for key in range(31)] == [model.get(key) for key in range(31)]
        assert [key in layered for key in range(31)] == [key in model for key in range(31)]


def test_a_change_of_a_large_map_touches_little() -> None:
    layered = LayeredMap({number: number for number in range(100_000)})
    bottom = layered._layers[0]
    for number in range(1_000):
        layered = layered.changed({-number - 1: number})
    assert layered._layers[0] is bottom
    assert len(layered._layers) <= 12
    assert len(layered) == 101_000
