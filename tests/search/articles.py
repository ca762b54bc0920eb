"""A table of articles: texts whose scores differ, and vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from deployer.specs.model import IndexSpec, TableSpec
from deployer.specs.types.arrow import columns_of
from tests.tables.indexed import SIZE

WORDS = IndexSpec("words", ("remark",), "inverted", {"stem": False, "remove_stop_words": False, "with_position": True})
TITLES = replace(WORDS, name="titles", columns=("title",))


def documents(count: int, start: int = 0) -> pa.Table:
    """Texts of 3 to 20 words, some of which are frequent, and vectors that have nothing to do with them."""
    random = np.random.default_rng(start)
    texts = [
        " ".join(f"w{int(word)}" for word in random.zipf(1.4, random.integers(3, 21)) % 200) for _ in range(2 * count)
    ]
    vectors = pa.array(random.normal(size=count * SIZE), pa.float32())
    return pa.table(
        {
            "id": range(start, start + count),
            "remark": texts[:count],
            "title": texts[count:],
            "embedding": pa.FixedSizeListArray.from_arrays(vectors, SIZE),
        }
    )


ARTICLES = TableSpec("air", "articles", columns_of(documents(1).schema), indexes=(TITLES, WORDS))
