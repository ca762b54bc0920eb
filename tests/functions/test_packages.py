"""Packages carry the code that a job elsewhere needs, say what they are without running, and are refused when they are
not what they were."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployer.datasets.storage.function_packages import package_path, remove_packages, stored_packages
from deployer.errors import Corrupt, InvalidFunction, NotFound, Refused
from deployer.functions import UDF, udf
from deployer.functions.model import of_values
from deployer.functions.packages.imports import missing_modules
from deployer.functions.packages.package import LARGEST, PackedFunction, pack, read_package, unpack
from deployer.functions.packages.stored import function_info, load_function, save_function
from deployer.platform.isolation.trusted_functions import (
    AUTHORS_VARIABLE,
    PACKAGES_VARIABLE,
    VARIABLE,
    TrustedFunctions,
)
from deployer.platform.storage.envelope import seal, unseal

PROJECT = {
    "farming/__init__.py": "",
    "farming/units.py": "ACRES = 2.5\n\n\ndef hectares(acres):\n    return acres / ACRES\n",
    "farming/size.py": "from typing import NamedTuple\n\n\nclass Size(NamedTuple):\n    area: float\n    name: str\n",
    "farming/model.py": """
from pydantic import BaseModel


class Model(BaseModel):
    area: float
    name: str | None = None
""",
    "farming/shared.py": "import threading\n\nLOCK = threading.Lock()\n",
    "farming/locked.py": """
from deployer.functions import udf
from farming import shared


@udf
def locked(acres: float) -> float:
    with shared.LOCK:
        return acres
""",
    "farming/fields.py": """
from deployer.functions import Columns, udf
from farming import units
from farming.model import Model
from farming.size import Size


@udf
def area(acres: float) -> float:
    return units.hectares(acres)


@udf
def described(acres: float) -> Columns[Size]:
    return Size(units.hectares(acres), f"{acres} acres")


@udf
def modelled(acres: float) -> Columns[Model]:
    return Model(area=units.hectares(acres))
""",
}
RUN_ELSEWHERE = """
import sys
import pyarrow as pa
from deployer.functions import Caller
from deployer.functions.packages.package import unpack
found = unpack(sys.stdin.buffer.read())
print(Caller(found, found.parameters)(pa.RecordBatch.from_pydict({"acres": [5.0, 10.0]})).values.to_pydict())
"""
HASHED = "0123456789abcdef" * 4


@udf
def doubled(a: int) -> int:
    return 2 * a


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("", ".units", ".size", ".model", ".fields", ".shared", ".locked"):
        monkeypatch.delitem(sys.modules, f"farming{name}", raising=False)
    return importlib.import_module


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        pytest.param("area", {"area": [2.0, 4.0]}, id="a module that it uses"),
        pytest.param("described", {"area": [2.0, 4.0], "name": ["5.0 acres", "10.0 acres"]}, id="a class"),
        pytest.param("modelled", {"area": [2.0, 4.0], "name": [None, None]}, id="a model of pydantic"),
    ],
)
def test_code_of_the_project_goes_along(project: Callable[[str], Any], name: str, wanted: dict[str, Any]) -> None:
    packed = pack(getattr(project("farming.fields"), name))
    ended = subprocess.run(
        [sys.executable, "-c", RUN_ELSEWHERE], input=packed.bytes, capture_output=True, check=True
    )  # its path has no `farming`
    assert ended.stdout.decode().strip() == str(wanted)
    assert not [each for each in read_package(packed.bytes).modules if each == "farming"]


def test_what_a_module_of_the_project_keeps_is_named(project: Callable[[str], Any]) -> None:
    with pytest.raises(InvalidFunction, match=r"`LOCK` of the module `farming.shared` cannot be carried"):
        pack(project("farming.locked").locked)


def test_a_package_says_what_it_is_without_running(tmp_path: Path) -> None:
    @udf(memory="2GiB", num_gpus=0.5, version="7")
    def parsed(text: str) -> int:
        import yaml

        return len(yaml.safe_load(text))

    found, author = function_info(str(tmp_path), save_function(str(tmp_path), parsed, "ana@host"))
    assert (found.name, found.version, found.form, found.parameters) == ("parsed", "7", "scalar", ("text",))
    assert (found.outputs, found.memory, found.num_gpus, author) == ((("", "int64"),), 2 * 2**30, 0.5, "ana@host")
    assert "yaml" in found.modules
    assert [each.partition("==")[0] for each in found.requirements if "yaml" in each.lower()] == ["PyYAML"]
    assert "def parsed(text: str) -> int:" in found.source
    assert found.python == f"{sys.version_info.major}.{sys.version_info.minor}"


def test_it_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    package_hash = save_function(str(tmp_path), doubled, "ana")
    assert save_function(str(tmp_path), doubled, "ben") == package_hash
    assert function_info(str(tmp_path), package_hash)[1] == "ana"
    assert list(stored_packages(str(tmp_path))) == [package_hash]
    found = load_function(str(tmp_path), package_hash, TrustedFunctions())
    assert (found(4), found.version) == (8, doubled.version)
    remove_packages(str(tmp_path), [package_hash])
    with pytest.raises(NotFound, match="not stored"):
        load_function(str(tmp_path), package_hash, TrustedFunctions(all_packages=True))


def stored_by_another(root: Path, author: str = "eve") -> str:
    """Stores a package whose code leaves a trace, as another process would."""
    trace = root / "ran"

    class Trace:
        def __reduce__(self) -> tuple[Any, ...]:
            return (open, (str(trace), "w"))

    head, _, _ = pack(doubled).bytes.partition(b"\n")
    import hashlib
    import pickle

    body = pickle.dumps(Trace())
    line = json.dumps({**json.loads(head), "pickle_hash": hashlib.sha256(body).hexdigest()}).encode()
    data = line + b"\n" + body
    package_hash = hashlib.sha256(data).hexdigest()
    (root / "_udfs").mkdir(exist_ok=True)
    (root / package_path(package_hash)).write_bytes(seal(json.dumps({"author": author}).encode() + b"\n" + data))
    return package_hash


@pytest.mark.parametrize(
    ("trusted", "environment", "runs"),
    [
        pytest.param(TrustedFunctions(), {}, False, id="nothing"),
        pytest.param(TrustedFunctions(frozenset({"a.b:c", HASHED})), {}, False, id="other functions"),
        pytest.param(TrustedFunctions(authors=frozenset({"ana"})), {}, False, id="another author"),
        pytest.param(TrustedFunctions(authors=frozenset({"eve"})), {}, True, id="its author"),
        pytest.param(TrustedFunctions(all_packages=True), {}, True, id="all packages"),
        pytest.param(None, {AUTHORS_VARIABLE: "ana, eve"}, True, id="its author, by the environment"),
        pytest.param(None, {PACKAGES_VARIABLE: "1"}, True, id="all packages, by the environment"),
        pytest.param(None, {PACKAGES_VARIABLE: "0", AUTHORS_VARIABLE: "even"}, False, id="none, by the environment"),
    ],
)
def test_code_of_the_lake_runs_only_where_it_is_trusted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trusted: TrustedFunctions | None,
    environment: dict[str, str],
    runs: bool,
) -> None:
    for variable in (VARIABLE, AUTHORS_VARIABLE, PACKAGES_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    package_hash = stored_by_another(tmp_path)
    function_info(str(tmp_path), package_hash)
    allowed = TrustedFunctions.allowed() if trusted is None else trusted
    with pytest.raises((Refused, InvalidFunction)) as caught:  # what runs here is no function
        load_function(str(tmp_path), package_hash, allowed)
    assert isinstance(caught.value, Refused) is not runs
    assert (tmp_path / "ran").exists() is runs
    if not runs:
        assert "eve packaged" in caught.value.what
        assert "--trust-udfs" in caught.value.remedy


def test_its_hash_can_be_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package_hash = stored_by_another(tmp_path)
    monkeypatch.setenv(VARIABLE, f"words:vectors,{package_hash}")
    with pytest.raises(InvalidFunction):
        load_function(str(tmp_path), package_hash, TrustedFunctions.allowed())
    assert (tmp_path / "ran").exists()


def damaged(sealed: bytes) -> bytes:
    return sealed[:-1] + bytes([sealed[-1] ^ 1])


def other_body(sealed: bytes) -> bytes:
    head, line, _ = unseal(sealed, "").split(b"\n", 2)
    return seal(b"\n".join([head, line, b"cos\nsystem\n"]))


def newer(sealed: bytes) -> bytes:
    head, line, body = unseal(sealed, "").split(b"\n", 2)
    return seal(b"\n".join([head, json.dumps({**json.loads(line), "format": 2}).encode(), body]))


@pytest.mark.parametrize(
    ("changed", "kind", "message"),
    [
        pytest.param(damaged, Corrupt, "checksum", id="a bit"),
        pytest.param(lambda sealed: sealed[:40], Corrupt, "checksum", id="cut off"),
        pytest.param(lambda sealed: b"", Corrupt, "did not write this content", id="empty"),
        pytest.param(lambda sealed: seal(b"{}"), Corrupt, "not a stored package", id="no package"),
        pytest.param(lambda sealed: seal(b"[]\n{}\n"), Corrupt, "not a stored package", id="no author"),
        pytest.param(other_body, Corrupt, "not a package", id="another pickle"),
        pytest.param(newer, Refused, "newer deployer", id="a newer format"),
        pytest.param(
            lambda sealed: seal(b'{"author": "x"}\n' + pack(udf(lambda_)).bytes),
            Corrupt,
            "another function",
            id="other",
        ),
    ],
)
def test_a_changed_package_is_refused(
    tmp_path: Path, changed: Callable[[bytes], bytes], kind: type[Exception], message: str
) -> None:
    package_hash = save_function(str(tmp_path), doubled, "ana")
    file = tmp_path / package_path(package_hash)
    file.write_bytes(changed(file.read_bytes()))
    with pytest.raises(kind, match=message):
        load_function(str(tmp_path), package_hash, TrustedFunctions(all_packages=True))


def lambda_(a: int) -> int:
    return 3 * a


def test_a_damaged_package_is_replaced(tmp_path: Path) -> None:
    package_hash = save_function(str(tmp_path), doubled, "ana")
    file = tmp_path / package_path(package_hash)
    file.write_bytes(damaged(file.read_bytes()))
    save_function(str(tmp_path), doubled, "ana")
    assert load_function(str(tmp_path), package_hash, TrustedFunctions())(2) == 4


@pytest.mark.parametrize("name", ["../../state", "", "x" * 64, "0" * 63])
def test_a_hash_is_never_another_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidFunction, match="not the hash"):
        load_function(str(tmp_path), name, TrustedFunctions(all_packages=True))


@udf
def factorial(n: int) -> int:
    return 1 if n < 2 else n * factorial(n - 1)


@udf
def parsed(text: str) -> int:
    import yaml

    return len(yaml.safe_load(text))


def test_functions_that_name_functions_go_along() -> None:
    assert unpack(pack(factorial).bytes)(5) == 120
    packed = pack(udf(data_type="int64")(lambda text: parsed(text) + factorial(3)))
    assert unpack(packed.bytes)("[1, 2]") == 8
    assert "yaml" in read_package(packed.bytes).modules


def test_fields_of_another_release_are_left_out() -> None:
    assert of_values({**doubled.values(), "colour": "red"}) == doubled
    old = {name: value for name, value in doubled.values().items() if name != "max_concurrent_calls"}
    assert of_values(old) == doubled


# --- what cannot be packaged


def over_a_file() -> UDF:
    log = Path(__file__).open(encoding="utf-8")  # noqa: SIM115
    return udf(data_type="int64")(lambda a: log.write(str(a)))


def over_a_lock() -> UDF:
    lock = threading.Lock()

    def locked(a: int) -> int:
        with lock:
            return a

    return udf(locked)


def over_a_generator_in_an_instance() -> UDF:
    class Numbered:
        def __init__(self) -> None:
            self.numbers = (each for each in range(3))

        def __call__(self, a: int) -> int:
            return next(self.numbers)

    return udf(Numbered())


def over_a_global() -> UDF:
    def shared(a: int) -> int:
        return a if OPEN.locked() else 0

    return udf(shared)


def importing_what_is_missing() -> UDF:
    def imported(a: int) -> int:
        import not_installed_anywhere.part  # type: ignore[import-not-found]

        return int(not_installed_anywhere.part.of(a))

    return udf(imported)


def too_large() -> UDF:
    model = bytes(LARGEST)
    return udf(data_type="int64")(lambda a: model[a])


OPEN = threading.Lock()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(
            over_a_file, r"`log`, which .*<lambda>` keeps cannot be carried .*: 'an open file", id="open file"
        ),
        pytest.param(over_a_lock, r"`lock`, which .*locked` keeps cannot be carried", id="lock"),
        pytest.param(over_a_generator_in_an_instance, "attribute `numbers` of `Numbered`", id="generator"),
        pytest.param(over_a_global, "the global `OPEN`, which .*shared` uses", id="global"),
        pytest.param(importing_what_is_missing, "it imports not_installed_anywhere, which", id="missing package"),
        pytest.param(too_large, "more than 10.* MiB|more than 10", id="too large"),
    ],
)
def test_what_cannot_be_packaged_is_named(tmp_path: Path, make: Callable[[], UDF], message: str) -> None:
    with pytest.raises(InvalidFunction, match=message):
        save_function(str(tmp_path), make(), "ana")
    assert not list(tmp_path.iterdir())


def test_an_import_whose_absence_is_handled_is_not_missed() -> None:
    def handled(a: int) -> int:
        try:
            import not_installed_anywhere
        except ImportError:
            return a
        return int(not_installed_anywhere.of(a))

    found = unpack(pack(udf(handled)).bytes)
    assert found(3) == 3


def test_missing_modules_are_found_without_importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raises_when_imported.py").write_text("raise SystemExit\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert missing_modules(["raises_when_imported", "json", "not_there", "not_there_either.part"]) == (
        "not_there",
        "not_there_either.part",
    )


def test_another_python_is_named() -> None:
    line, _, body = pack(doubled).bytes.partition(b"\n")
    other = PackedFunction("", json.dumps({**json.loads(line), "python": "3.99"}).encode() + b"\n" + body)
    with pytest.raises(InvalidFunction, match=r"was packaged by Python 3\.99"):
        unpack(other.bytes)


def test_saving_again_makes_a_package_young(tmp_path: Path) -> None:
    package_hash = save_function(str(tmp_path), doubled, "ana")
    file = tmp_path / package_path(package_hash)
    os.utime(file, (1, 1))
    save_function(str(tmp_path), doubled, "ben")
    assert file.stat().st_mtime > 1
    assert function_info(str(tmp_path), package_hash)[1] == "ana"
