"""Refreshes of views: what changed in their sources is found, and taken over into their rows by one commit.

`create` makes the table of a view. `plan` decides from logs and manifests how it is refreshed, `sources` holds the
sources at one moment, `reading` reads them and their changes for the query, and `commit` commits what comes of it with
a record of what the view reflects then (`record`). `refresh` does all of that as a run of the service REFRESH.

`deployer.views.new_views` and every layer above `deployer.views` may import it.
"""
