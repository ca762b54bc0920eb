"""The one error of folding."""

from __future__ import annotations


class Inapplicable(Exception):
    """An update does not fit a state: a conflict during a commit, corruption when read from the log."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)
