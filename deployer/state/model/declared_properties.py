"""Names of the declared properties of tables and of the properties of the instance."""

from __future__ import annotations

#: Properties of the instance: its spec as last applied, and who applied it. Tables have a declared owner too.
SPEC, OWNER = "spec", "owner"


#: A table's declared property: the declared split points.
SPLIT_POINTS = "split_points"


#: A table's declared property: the number of rows that a leaf may hold before it is split.
MAX_ROWS_PER_LEAF = "max_rows_per_leaf"


#: A table's declared property: whether row keys must be unique.
UNIQUE = "unique"


#: A table's declared property: the function that makes vectors from its texts, as the JSON form of `Embedding`.
EMBEDDING = "embedding"
#: A table's declared properties: the time for which rows are kept, and the rows that are under a legal hold.
RETENTION, HOLDS = "retention", "holds"
#: A table's declared property: the time for which its changes can be read.
RETAIN_CHANGES = "retain_changes"
#: A table's declared property: the query of a view. Only refreshes write its rows (`deployer.views.definition`).
VIEW = "view"

#: The prefix of the instance's properties for entries of the catalog that are not tables of the instance; the full name
#: follows. An entry whose `status` is `CREATING` has no data yet, and its name is still free.
CATALOG_ENTRY, CREATING = "catalog/", "creating"
#: The prefix of the instance's properties for datasets of recordings; the id of the dataset follows.
RECORDINGS = "recordings/"
#: The prefix of the instance's properties for names of datasets of recordings; the name as the user gave it follows.
#: The value is the id of the dataset.
DATASET_NAME = "recordings-name/"
#: The prefix of the names of datasets of blueprints; the id of their dataset follows.
BLUEPRINTS = "__bp_"
#: The database of a name without a database.
DEFAULT_DATABASE = "default"
#: The prefix of the instance's properties for savepoints of the catalog; the name of the savepoint follows.
CATALOG_SAVEPOINT = "catalog-savepoint/"
