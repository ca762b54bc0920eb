"""The generator of docs/spec.md and of the pages in docs/spec/. Its sources are the JSON Schema and the rules.

Programs import it; no other package may import it.
"""
