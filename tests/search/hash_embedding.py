"""An embedding function for tests: the vector of a text is the sum of a fixed vector for each of its words."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from tests.tables.indexed import SIZE


def vectors(texts: list[str]) -> npt.NDArray[np.float32]:
    """A row for each text."""
    return np.array([_vector(text) for text in texts], np.float32)


def _vector(text: str) -> npt.NDArray[np.float32]:
    found = np.zeros(SIZE, np.float32)
    for word in text.lower().split():
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
        found += np.random.default_rng(seed).normal(size=SIZE).astype(np.float32)
    return found
