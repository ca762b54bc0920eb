"""Lakes that were read already, for a program that reads the same specs, so that the program and the command have the
same lake.

The program runs in a process of its own, which gets them as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from deployer.specs.model import Lake
from deployer.specs.serialized.aws import aws_from_json, aws_to_json
from deployer.specs.serialized.datasets import dataset_from_json, dataset_to_json
from deployer.specs.serialized.specs import instance_from_json, instance_to_json, table_from_json, table_to_json

_Place = tuple[Path, Path, str | None]

_known: dict[_Place, Lake] = {}


@contextmanager
def known_lake(project_dir: Path, specs_path: Path, lake: Lake, stack: str | None = None) -> Iterator[None]:
    """Within the block, `load_lake` of the same place returns `lake`, in this process and in the program that it
    runs."""
    place = _place(project_dir, specs_path, stack)
    _known[place] = lake
    try:
        yield
    finally:
        del _known[place]


def find_known(project_dir: Path, specs_path: Path, stack: str | None) -> Lake | None:
    """Returns the known lake of that place."""
    return _known.get(_place(project_dir, specs_path, stack)) if _known else None


def known_as_json() -> list[Any]:
    """Returns all known lakes, for `learn`."""
    return [
        {"project": str(project), "specs": str(specs), "stack": stack, **lake_as_json(lake)}
        for (project, specs, stack), lake in _known.items()
    ]


def learn(documents: Sequence[Any]) -> None:
    """Adds the lakes from `known_as_json` of another process; they have no places in files."""
    for each in documents:
        _known[Path(each["project"]), Path(each["specs"]), each["stack"]] = lake_from_json(each)


def lake_as_json(lake: Lake) -> dict[str, Any]:
    """Returns a lake without the places in the specs' files, for `lake_from_json` of another process."""
    return {
        "instance": instance_to_json(lake.instance),
        "aws": aws_to_json(lake.instance.aws),
        "tables": [table_to_json(table) for table in lake.tables],
        "datasets": [dataset_to_json(dataset) for dataset in lake.datasets],
    }


def lake_from_json(document: Mapping[str, Any]) -> Lake:
    """Returns the lake from `lake_as_json`."""
    instance = replace(instance_from_json(document["instance"]), aws=aws_from_json(document["aws"]))
    datasets = tuple(map(dataset_from_json, document["datasets"]))
    return Lake(instance, tuple(map(table_from_json, document["tables"])), datasets=datasets)


def _place(project_dir: Path, specs_path: Path, stack: str | None) -> _Place:
    project = Path(project_dir).resolve()
    return project, project / specs_path, stack
