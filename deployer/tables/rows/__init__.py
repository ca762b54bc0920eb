"""Changes of rows: deletions, updates and merges, each as one commit to Lance.

A change is computed on one version of the table: rows that go are deleted in place (Lance's deletion files), fragments
that lose all of their rows are removed, and rows that come, or get other values, are written as new fragments, sorted,
each leaf apart. Indexes stay: Lance takes removed fragments out of them, and new ones wait for the next upkeep.

What Lance does with two such commits that were prepared on one version (pylance 14, tried in
`tests/tables/rows/test_lance_facts.py`):

| first ↓, second → | append | deletion | update | rewrite | new column file | projection |
|---|---|---|---|---|---|---|
| append | ✓ | ✓ | ✓ | ✓ | ✓ | ✗ |
| deletion | ✓ | ✗ same fragments | ✗ same fragments | ✗ same fragments | ✓ | ✓ |
| update (deletes and adds) | ✓ | ✗ same fragments | ✗ same fragments | ✗ same fragments | ✗ same fragments | ✗ |
| rewrite | ✓ | ✗ same fragments | ✗ same fragments | ✗ same fragments | ✗ same fragments | ✓ |
| new column file | ✓ | ✗ same fragments | ✗ same fragments | ✗ same fragments | | |

Fragments count as the same although different rows of them are deleted, and also when they are only listed and not
changed. The latter is how changes of rows exclude each other: each lists the first fragment of its version, as two
changes of different fragments would else both be taken that no order of the two explains (two merges that insert one
key, for example). The one that loses is computed again on the newest version (`commit`).

So changes of rows are serializable: a change is a function of all rows of the version right below its commit, but for
rows that others appended after it was computed; these count as added after the change.

Every layer above `deployer.tables` may import it.
"""
