"""docs/spec.md, made from the JSON Schema and the rules."""
