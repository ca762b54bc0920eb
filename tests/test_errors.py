"""Errors carry everything between processes, whatever their constructors take."""

from __future__ import annotations

import copy
import pickle

import pytest

from deployer import errors
from deployer.errors import CommitTimedOut, DeployerError, InvalidSpecs, Position, Problem

KINDS = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DeployerError)
]  # every one that there is
PROBLEMS = [Problem(Position("a.yaml", 3, 5), "no type", "add one", "missing-field")]


def made(kind: type[DeployerError]) -> DeployerError:
    if issubclass(kind, InvalidSpecs):
        return kind(PROBLEMS)
    if issubclass(kind, CommitTimedOut):
        return kind("too slow", where="table/a.b", remedy="try again", attempts=3)
    return kind("it broke", where=Position("a.yaml", 2), remedy="fix it")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("carry", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy], ids=["pickle", "copy"])  # noqa: S301
def test_an_error_comes_out_as_it_went_in(kind: type[DeployerError], carry: object) -> None:
    error = made(kind)
    error.add_note("while loading")
    carried = carry(error)  # type: ignore[operator]
    assert type(carried) is kind
    assert (str(carried), carried.args, vars(carried)) == (str(error), error.args, vars(error))
