"""Space-filling curves: from positions in several columns to one number that keeps near rows near.

Z-order interleaves the bits of the places (Morton 1966). The Hilbert curve is that of John Skilling, "Programming the
Hilbert curve", AIP Conference Proceedings 707, 381 (2004): neighbours on it are neighbours in space, so its ranges are
more compact than those of the Z-order, for a little more work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Curve = Literal["sort", "zorder", "hilbert"]

MOST_BITS = 12  #: bits of a position: as many as for quantiles


def bits_for(columns: int) -> int:
    """Returns the number of bits for the place in each column, so that 64 bits hold all. At most 64 columns."""
    return max(1, min(MOST_BITS, 64 // columns))


def positions(curve: Curve, places: Sequence[NDArray[np.uint64]], bits: int) -> NDArray[np.uint64]:
    """Returns the position of each row on the curve.

    `places` are its positions in each column (shape: columns × rows), below 2**bits. `sort` concatenates the positions:
    the order of the first column, then the second.
    """
    if curve == "sort" or len(places) == 1:
        return _one_after_the_other(places, bits)
    return zorder(places, bits) if curve == "zorder" else hilbert(places, bits)


def zorder(places: Sequence[NDArray[np.uint64]], bits: int) -> NDArray[np.uint64]:
    """Returns the places' bits interleaved: the highest of the first column is the highest of all."""
    found = np.zeros(len(places[0]), np.uint64)
    for number, place in enumerate(places):
        found |= _spread(place, bits, len(places), len(places) - 1 - number)
    return found


def hilbert(places: Sequence[NDArray[np.uint64]], bits: int) -> NDArray[np.uint64]:
    """Returns the distance along Skilling's Hilbert curve: his AxestoTranspose on whole columns, then interleaved."""
    axes = [place.astype(np.uint64, copy=True) for place in places]
    one = np.uint64(1)
    for level in range(bits - 1, 0, -1):  # undo excess work
        bit = one << np.uint64(level)
        below = bit - one
        for axis in axes:
            is_set = (axis & bit) != 0
            exchanged = np.where(is_set, np.uint64(0), (axes[0] ^ axis) & below)
            inverted = np.where(is_set, below, np.uint64(0))
            axes[0] ^= inverted | exchanged
            if axis is not axes[0]:
                axis ^= exchanged
    for axis, before in zip(axes[1:], axes, strict=False):  # Gray encode
        axis ^= before
    flipped = np.zeros_like(axes[0])
    for level in range(bits - 1, 0, -1):
        bit = one << np.uint64(level)
        flipped ^= np.where((axes[-1] & bit) != 0, bit - one, np.uint64(0))
    for axis in axes:
        axis ^= flipped
    return zorder(axes, bits)


def _one_after_the_other(places: Sequence[NDArray[np.uint64]], bits: int) -> NDArray[np.uint64]:
    found = np.zeros(len(places[0]), np.uint64)
    for place in places:
        found = (found << np.uint64(bits)) | place
    return found


def _spread(place: NDArray[np.uint64], bits: int, step: int, first: int) -> NDArray[np.uint64]:
    """Returns numbers with bit i of each position at bit i * step + first, from a table of all possible positions."""
    values = np.arange(1 << bits, dtype=np.uint64)
    table = np.zeros(1 << bits, np.uint64)
    for bit in range(bits):
        table |= ((values >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * step + first)
    return table[place]
