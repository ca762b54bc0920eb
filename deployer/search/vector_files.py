"""Query vectors in files: NumPy's `.npy`, a JSON list, or numbers separated by spaces, commas or lines."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from deployer.errors import InvalidInput
from deployer.platform.files.reading import read_limited

MOST = 16 * 2**20  #: largest bytes of a file
_MAGIC = b"\x93NUMPY"


def read_vector_file(path: Path) -> Any:
    """Returns the numbers of the file without other checks. Raises InvalidInput for a file without numbers."""
    try:
        data = read_limited(path, MOST)
    except OSError as failure:
        raise InvalidInput(
            f"the vector cannot be read: {failure.strerror or failure}", where=path, remedy="give a file of numbers"
        ) from None
    try:
        return _numbers(data)
    except (
        ValueError,
        EOFError,
        MemoryError,
        RecursionError,
    ):  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise InvalidInput(
            "the file has no vector",
            where=path,
            remedy="give a .npy file, a JSON list of numbers, or numbers separated by spaces or commas",
        ) from None


def _numbers(data: bytes) -> Any:
    if data.startswith(_MAGIC):
        found = np.load(io.BytesIO(data), allow_pickle=False)
        return found[0] if found.ndim == 2 and len(found) == 1 else found
    text = data.decode("utf-8-sig").strip()
    if text.startswith(("[", "{")):
        return json.loads(text)
    return [float(number) for number in text.replace(",", " ").split()]
