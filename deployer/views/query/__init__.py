"""The queries of views: their parsing, the computation of all rows, and the computation of changed rows.

The package does not open tables. It reads a source through `SourceReader`, the changes of a source through
`SourceChanges`, and the view's own rows through `StoredView`; see `deployer.views.query.model`.

`deployer.views.refresh` and `deployer.app` may import it.
"""
