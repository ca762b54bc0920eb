"""The parser of queries. It turns the text into a `Program`, and rejects queries that cannot be maintained.

`deployer.views.query.affected`, `deployer.views.query.build`, `deployer.views.query.engine` and the rest of
`deployer.views` may import it.
"""
