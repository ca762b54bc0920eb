"""`doctor` says which packaged functions the lake has and which of them run here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from deployer.app.diagnostics.checks import Status
from deployer.app.diagnostics.functions import packaged_functions
from deployer.datasets.storage.function_packages import package_path
from deployer.errors import InvalidInput
from deployer.functions import udf
from deployer.functions.packages.stored import save_function
from deployer.platform.isolation.trusted_functions import (
    AUTHORS_VARIABLE,
    PACKAGES_VARIABLE,
    VARIABLE,
    TrustedFunctions,
)

HASH = "0123456789abcdef" * 4


@udf
def doubled(a: int) -> int:
    return 2 * a


@udf
def tripled(a: int) -> int:
    return 3 * a


def damaged(root: Path) -> None:
    package_hash = save_function(str(root), tripled, "ben")
    (root / package_path(package_hash)).write_bytes(b"")


@pytest.mark.parametrize(
    ("stored", "environment", "status", "what"),
    [
        pytest.param([], {}, Status.NOT_APPLICABLE, "the lake has no packaged functions", id="none"),
        pytest.param(
            ["ana"], {}, Status.OK, "1 packaged function by ana; none is trusted here, so none runs", id="one"
        ),
        pytest.param(
            ["ana", "ben"],
            {AUTHORS_VARIABLE: "ana", VARIABLE: f"a.b:c,{HASH}"},
            Status.OK,
            "2 packaged functions by ana, ben; functions of ana and 1 function by its hash run here",
            id="authors and hashes",
        ),
        pytest.param(
            ["ana"],
            {PACKAGES_VARIABLE: "1"},
            Status.WARNING,
            "1 packaged function by ana; all of them run here: anyone who can write to the lake chooses what runs",
            id="all",
        ),
        pytest.param(
            [],
            {AUTHORS_VARIABLE: "ana"},
            Status.OK,
            "0 packaged functions; functions of ana run here",
            id="authors of none",
        ),
    ],
)
def test_who_is_trusted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stored: list[str],
    environment: Mapping[str, str],
    status: Status,
    what: str,
) -> None:
    for variable in (VARIABLE, AUTHORS_VARIABLE, PACKAGES_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    for function, author in zip((doubled, tripled), stored, strict=False):
        save_function(str(tmp_path), function, author)
    found = packaged_functions(str(tmp_path))
    assert (found.status, found.what) == (status, what)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        pytest.param(damaged, r"1 packaged function by \(damaged\)", id="damaged package"),
        pytest.param(lambda root: None, "no packaged functions", id="no lake"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, make: Callable[[Path], None], what: str) -> None:
    make(tmp_path)
    found = packaged_functions(str(tmp_path))
    assert re.search(what, found.what)
    assert packaged_functions("", lambda: "no credentials").what == "no credentials"


def test_a_name_in_the_environment_that_is_none_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "not a name")
    with pytest.raises(InvalidInput, match="'not a name' is not the name of a function"):
        packaged_functions(str(tmp_path))
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(InvalidInput, match="the trusted authors are one string"):
        TrustedFunctions.allowed(authors="ana")
