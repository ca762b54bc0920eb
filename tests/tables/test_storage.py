"""The folders of an instance's data, while several processes or threads make and remove tables at once."""

from __future__ import annotations

from pathlib import Path

from deployer.datasets.storage.places import erase_dataset, remove_empty_root
from deployer.state.model.location import Location


def test_a_database_is_left_when_its_last_dataset_goes(tmp_path: Path) -> None:
    # Lance makes a dataset's folders one after the other: a database's folder that goes in between fails the creation.
    (tmp_path / "air" / "flights-1.lance" / "data").mkdir(parents=True)
    erase_dataset(str(tmp_path), Location("air/flights-1.lance"))
    erase_dataset(str(tmp_path), Location("air/never-2.lance"))
    assert [path.name for path in tmp_path.iterdir()] == ["air"]
    assert list((tmp_path / "air").iterdir()) == []


def test_an_instance_that_goes_takes_its_empty_folders(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    (root / "air").mkdir(parents=True)
    remove_empty_root(str(root))
    assert not root.exists()
    remove_empty_root(str(root))


def test_an_instance_that_goes_leaves_what_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "air").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    (tmp_path / "readme.txt").touch()
    remove_empty_root(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "readme.txt"]
