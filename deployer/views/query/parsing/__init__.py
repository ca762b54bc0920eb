"""The text of a query, parsed into a `Program`: tokens, clauses and names, and what cannot be maintained, refused.

`deployer.views.query.affected`, `deployer.views.query.build`, `deployer.views.query.engine` and the rest of
`deployer.views` may import it.
"""
