"""The JSON Schema of specs, part by part."""
