"""The change feed of a table: which rows each commit inserted, updated and deleted.

The feed is computed from the log's and Lance's records of commits; nothing is written for it. The log has the sequence
of the table's datasets (`timeline`). For each version above a position, the fragments of that version are compared with
those of the previous version (`commits`): only differing fragments are opened. Rows that a commit removed and rows that
it added are paired by the row key (`pairing`): a pair is an update. Rows are read in batches, as of the commit (`rows`,
`batches`). `feed` puts this together for one range of versions.

`deployer.tables.rows` and every layer above `deployer.tables` may import it.
"""
