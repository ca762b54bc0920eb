"""Names of the properties that the state keeps of a table's declaration."""

from __future__ import annotations

#: Properties of the instance: its spec as last applied, and who applied it.
SPEC, OWNER = "spec", "owner"


#: What a table's `declared` remembers beside its owner: the split points that were asked for.
SPLIT_POINTS = "split_points"


#: And how many rows a leaf may hold before it is split.
MAX_ROWS_PER_LEAF = "max_rows_per_leaf"


#: And whether no two rows may have the same row keys.
UNIQUE = "unique"


#: And which function makes vectors of its texts: the JSON form of `Embedding`.
EMBEDDING = "embedding"
#: And how long rows are kept, and which of them are under a legal hold.
RETENTION, HOLDS = "retention", "holds"
#: And how long its changes can be read.
RETAIN_CHANGES = "retain_changes"
#: And the query of a view, whose rows only refreshes write (`deployer.views.definition`).
VIEW = "view"

#: And of the instance, one property for each entry of the catalog that is not a table of the instance: this, then its
#: full name. One whose `status` is this has no data yet, and does not take the name.
CATALOG_ENTRY, CREATING = "catalog/", "creating"
#: And one for each dataset of recordings: this, then its id.
RECORDINGS = "recordings/"
#: And one for the name of each dataset of recordings: this, then the name as it was given. The value is its id.
DATASET_NAME = "recordings-name/"
#: With which the names of datasets of blueprints begin; the id of their dataset follows.
BLUEPRINTS = "__bp_"
#: The database of a name that is given without one.
DEFAULT_DATABASE = "default"
#: And one for each savepoint of the catalog: this, then its name.
CATALOG_SAVEPOINT = "catalog-savepoint/"
