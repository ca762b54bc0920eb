"""Searches of one table: the vectors nearest to a vector, the rows with words, and both together.

It is a layer below `deployer.table`, which has it as `Table.search`.

`deployer.cli`, `deployer.table` and `deployer.ui` may import it.
"""

from deployer.search.builder import SearchBuilder
from deployer.search.rerank import RRFReranker
from deployer.search.resolve import search
from deployer.search.target import SearchTarget

__all__ = ["RRFReranker", "SearchBuilder", "SearchTarget", "search"]
