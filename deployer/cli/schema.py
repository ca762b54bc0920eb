"""`deployer schema`: the JSON Schema of spec files, for editors."""

from __future__ import annotations

from deployer.cli.options import AsJson


def schema(as_json: AsJson = False) -> int:
    """Print the JSON Schema of spec documents, with or without --json, so that editors complete and check them."""
    from deployer.cli.output import print_json
    from deployer.specs.json_schema import json_schema

    print_json(json_schema())
    return 0
