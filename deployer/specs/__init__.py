"""Reads YAML specs into frozen models: checks shape, references and types, and reports every problem with its place.

Every layer above it may import it.
"""

from deployer.specs.loading.known import known_lake
from deployer.specs.loading.lake import declared_root, load_lake
from deployer.specs.schema.document import json_schema

__all__ = ["declared_root", "json_schema", "known_lake", "load_lake"]
