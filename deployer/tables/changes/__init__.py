"""The change feed of a table: which rows each commit inserted, updated and deleted.

The feed is computed from what the log and Lance keep of commits; nothing is written for it. The log says which
datasets the table had, one after the other (`timeline`). For each version above a position, the fragments of that
version are compared with those of the version before (`commits`): only what differs is opened. Rows that a commit took
out and rows that it added are paired by the row key (`pairing`): a pair is an update. Rows are read in batches, as of
the commit (`rows`, `batches`). `feed` puts this together for one range of versions.

`deployer.tables.rows` and every layer above `deployer.tables` may import it.
"""
