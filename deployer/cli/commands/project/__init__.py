"""Commands on specs: init, validate, render, graph, schema, package."""
