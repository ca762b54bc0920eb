"""YAML specs to frozen models: shape, references and types are checked, and every problem has its place."""

from deployer.specs.json_schema import json_schema
from deployer.specs.known import known_lake
from deployer.specs.lake import declared_root, load_lake

__all__ = ["declared_root", "json_schema", "known_lake", "load_lake"]
