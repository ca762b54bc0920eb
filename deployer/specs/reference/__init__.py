"""docs/spec.md and the pages of docs/spec/, made from the JSON Schema and the rules.

Programs import it; no other package may import it.
"""
