"""docs/spec.md, made from the JSON Schema and the rules.

Programs import it; no other package may import it.
"""
