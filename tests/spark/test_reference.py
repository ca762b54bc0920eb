"""The page of types in Spark is written by the code."""

from __future__ import annotations

from deployer.spark.reference import reference
from tests.projects import REPOSITORY


def test_the_page_of_types_is_current() -> None:
    assert (REPOSITORY / "docs" / "types-in-spark.md").read_text(encoding="utf-8") == reference()
