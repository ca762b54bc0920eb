"""The text of a query, parsed into a `Program`: tokens, clauses and names, and what cannot be maintained, refused."""
