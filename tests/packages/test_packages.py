"""Real files of packages on the package index load as they are: infer, declare, create, load and compare values."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pytest

from deployer.cli.commands.project.infer import spec_text
from deployer.errors import DeployerError, InvalidInput
from deployer.specs import load_lake
from deployer.specs.model import TableSpec
from deployer.tables.admin.tables import create_table
from deployer.tables.importing.infer import infer
from deployer.tables.ingest.files.model import ReadOptions
from tests.packages.compare import differences, expected_rows
from tests.packages.data_files import downloaded
from tests.projects import INSTANCE
from tests.tables.lakes import Lake

pytestmark = pytest.mark.full

FILES = {  #: of each package, by glob, with how many there are
    "bokeh_sampledata": ("bokeh_sampledata/_data/*.csv*", 32),
    "gapminder": ("**/*.csv", 1),
    "palmerpenguins": ("palmerpenguins/data/*.csv", 2),
    "statsmodels": ("statsmodels/d*/**/*.csv", 54),
    "vega_datasets": ("vega_datasets/_data/*", 17),
}
DELIMITERS = {  #: of files by folder and name: `infer` detects them, pandas is given them
    "modechoice/modechoice.csv": ";",
    "anes96/anes96.csv": "\t",
    "src/anes96.csv": " ",
    "src/scotvote.csv": " ",
    "spector/spector.csv": " ",
}
WHITESPACE = {  #: files with several spaces or tabs between values
    *("E6_jmulti", "phat_mnlogit", "yhat_mnlogit", "survival_data_1000_10", "survival_data_100_5", "test_coint"),
    *(
        "survival_data_20_1",
        "survival_data_50_1",
        "survival_data_50_2",
        "AROLSConstantPredict",
        "AROLSNoConstantPredict",
    ),
}
REFUSED = {  #: files that are not tables, with what is said of them
    "arima212_forecast.csv": "row 2: the row has 5 values, and the header names 6",
    "scotland_population.csv": "row 11: the row has 1 value, and the header names 2",
    "unemp.csv": "row 6: the row has 5 values, and the header names 1",
}
TOO_WIDE = "poisson_resid.csv"  #: 20,190 columns, of which Lance takes 25 s to open a scanner
WITHOUT_HEADER = "if it is a row, give --no-header"  #: what is said of files whose first line is a row
MATRIX = ("airports.csv", "cars.json", "penguins.csv", "gapminder.csv", "elements.csv", "seattle-weather.csv")


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return downloaded(tmp_path_factory.mktemp("packages"))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def load(
    lake: Lake, file: Path, name: str, options: ReadOptions, engine: str = "driver"
) -> tuple[pa.Table, ReadOptions]:
    """The rows of the table that `schema infer` declares for the file, once it is loaded; and how text was read."""
    found = infer([str(file)], None, options)
    specs = lake.folder / "specs" / name
    specs.mkdir(parents=True)
    text = spec_text(TableSpec("air", name, found.columns), found)
    (specs / "lake.yaml").write_text(f"{INSTANCE}---\n{text}", encoding="utf-8")
    create_table(lake.store, lake.root, load_lake(specs, specs).tables[0], "tests/dev")
    lake.ingest(file, table=name, options=found.options, engine=engine, on_note=lambda _: None)
    return lake.open(name).scan().to_table(), found.options


def wrong(lake: Lake, file: Path, name: str, engine: str = "driver") -> list[str]:
    """What the table of a file has otherwise than the file."""
    try:
        try:
            rows, options = load(lake, file, name, ReadOptions(), engine)
        except InvalidInput as refusal:
            if WITHOUT_HEADER not in str(refusal):
                raise
            rows, options = load(lake, file, name, ReadOptions(header=False), engine)
    except DeployerError as refusal:
        said = REFUSED.get(file.name)
        return [] if said is not None and said in str(refusal) else [str(refusal)]
    how: dict[str, Any] = {} if options.header else {"header": None}
    separator = r"\s+" if file.stem in WHITESPACE else DELIMITERS.get(f"{file.parent.name}/{file.name}", ",")
    return differences(expected_rows(file, {**how, "sep": separator}), rows, options)


@pytest.mark.parametrize(
    ("package", "glob", "count"),
    [
        *(pytest.param(name, *files, id=name) for name, files in FILES.items()),
        pytest.param("statsmodels", "statsmodels/*/**/*.csv", 230, id="statsmodels-all", marks=pytest.mark.slow),
    ],
)
def test_files_load_as_they_are(package: str, glob: str, count: int, packages: Path, lake: Lake) -> None:
    files = [file for file in sorted((packages / package).glob(glob)) if file.name != TOO_WIDE]
    assert len(files) == count
    found = {file.name: wrong(lake, file, f"t{at}") for at, file in enumerate(files)}
    assert {name: what for name, what in found.items() if what} == {}


def _lance(rows: pd.DataFrame, file: Path) -> None:
    lance.write_dataset(pa.Table.from_pandas(rows, preserve_index=False), str(file))


def _zstd(rows: pd.DataFrame, file: Path) -> None:
    with pa.output_stream(file, compression="zstd") as stream:
        stream.write(rows.to_csv(index=False).encode())


FORMATS: dict[str, Callable[[pd.DataFrame, Path], object]] = {
    "parquet": lambda rows, file: rows.to_parquet(file, index=False),
    "arrow": lambda rows, file: feather.write_feather(rows, str(file)),
    "lance": _lance,
    "jsonl": lambda rows, file: rows.to_json(file, orient="records", lines=True, double_precision=15),
    "json": lambda rows, file: rows.to_json(file, orient="records", double_precision=15),
    "csv.gz": lambda rows, file: file.write_bytes(gzip.compress(rows.to_csv(index=False).encode())),
    "csv.zst": _zstd,
    "tsv": lambda rows, file: rows.to_csv(file, index=False, sep="\t"),
}


@pytest.mark.parametrize("form", FORMATS)
def test_the_rows_of_files_load_in_every_format(form: str, packages: Path, lake: Lake) -> None:
    found = {}
    for at, file in enumerate(file for name in MATRIX for file in sorted(packages.rglob(name))):
        rows = pd.read_json(file) if file.suffix == ".json" else pd.read_csv(file)
        written = lake.folder / f"{file.stem}{at}.{form}"
        FORMATS[form](rows.rename(columns=str), written)
        options = {"sep": "\t" if form == "tsv" else ","}
        loaded, read = load(lake, written, f"t{at}", ReadOptions())
        found[written.name] = differences(expected_rows(written, options), loaded, read)
    assert len(found) >= len(MATRIX)
    assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.parametrize("glob", ["parquet/*.parquet", "feather/*.feather"])
def test_files_of_pyarrow_load(glob: str, lake: Lake) -> None:
    files = sorted((Path(pa.__file__).parent / "tests" / "data").glob(glob))
    assert files
    found = {file.name: wrong(lake, file, f"t{at}") for at, file in enumerate(files)}
    assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_loads_files_as_this_process_does(packages: Path, lake: Lake) -> None:
    files = [file for name in MATRIX for file in sorted(packages.rglob(name))[:1]]
    found = {file.name: wrong(lake, file, f"t{at}", "spark") for at, file in enumerate(files)}
    assert {name: what for name, what in found.items() if what} == {}
