"""The error of an update that does not fit a state."""

from __future__ import annotations


class Inapplicable(Exception):
    """An update does not fit a state. During a commit it means a conflict; when a log is read, it means corruption."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)
