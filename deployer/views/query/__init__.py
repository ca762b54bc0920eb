"""The queries of views: parsed, computed as a whole, and computed from changes. It reads no table by itself.

A source is read through `SourceReader`, its changes through `SourceChanges`, and the view's own rows through
`StoredView`; see `deployer.views.query.model`.

`deployer.views.refresh` and `deployer.app` may import it.
"""
