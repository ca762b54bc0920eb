"""Refreshes of views. A refresh finds the changes of the sources and applies them to the view's rows in one commit.

`create` makes the table of a view. `plan` decides from logs and manifests how the view is refreshed. `sources` pins the
sources at one point in time, and `reading` reads them and their changes for the query. `commit` commits the resulting
rows together with a record of the source versions that the view then reflects (`record`). `refresh` performs all of
these steps as a run of the service REFRESH.

`deployer.views.new_views` and every layer above `deployer.views` may import it.
"""
