"""The state of an instance and of a table, as values without I/O. Every other package of `state` may import it."""
