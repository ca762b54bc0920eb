"""Documents checked against the schema; each error says what is wrong, where, and what is meant."""
