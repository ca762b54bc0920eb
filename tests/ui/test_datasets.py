"""What the pages show of datasets of recordings."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import quote

from deployer.ui.datasets import PAGE
from tests.catalog.datasets.recordings import scalars, write_recording
from tests.projects import run
from tests.ui.conftest import HOSTILE, OF_A_CLIENT, Browser


def size_of(*files: Path) -> int:
    return sum(each.stat().st_size for each in files)


def test_datasets_of_specs_and_of_clients_are_listed(browser: Browser, project: Path) -> None:
    listed = browser.view_of_datasets.datasets()
    assert [(each.name, each.manager) for each in listed.datasets] == [("drives", "lakes/dev"), (OF_A_CLIENT, "")]
    drives, made = (each.summary for each in listed.datasets)
    assert drives is not None and made is not None
    files = sorted((project / "recordings").glob("*.rrd"))
    assert (drives.segments, drives.layers, drives.bytes) == (4, 4, size_of(*files))
    assert (made.segments, made.layers, made.bytes) == (1, 1, size_of(project / "recordings/0.rrd"))
    text = browser.page("/datasets").text
    assert (
        "drives 4 4" in text
        and f"{OF_A_CLIENT} 1 1" in text
        and "clients none" in text
        and "lakes/dev CLEAN succeeded" in text
    )


def test_datasets_are_found_by_name(browser: Browser) -> None:
    text = browser.page("/datasets?words=DRIV").text
    assert "drives 4" in text and OF_A_CLIENT not in text
    assert "No dataset has that in its name" in browser.page("/datasets?words=nothing").text


def test_a_dataset_has_segments_layers_and_runs(browser: Browser) -> None:
    text = browser.page("/dataset/drives").text
    for said in (
        "4 segments",
        "4 layers",
        HOSTILE,
        "retention 30d",
        "drive 0 base 1",
        f"{HOSTILE} second 1",
        "COMPACT succeeded",
    ):
        assert said.lower() in text.lower(), said
    text = browser.page(f"/dataset/{quote(OF_A_CLIENT)}").text
    assert "1 segment" in text and "No run is recorded" in text and "Managed by clients" in text


def test_segments_are_found_by_name_and_come_in_pages(browser: Browser) -> None:
    text = browser.page("/dataset/drives?words=E%201").text
    assert "drive 1" in text and "drive 0" not in text
    assert "No segment has that in its name" in browser.page("/dataset/drives?words=nothing").text
    for number in range(PAGE):
        write_recording(Path(f"more/{number}.rrd"), f"x {number:03}", [scalars("/a", [number])])
    run("catalog", "register", "drives", *map(str, sorted(Path("more").iterdir())))
    first, second = (browser.page(f"/dataset/drives?{query}").text for query in ("", f"from={PAGE}"))
    assert f"1 to {PAGE} of {PAGE + 4}" in first and "drive 0" in first and "x 099" not in first and "Next" in first
    assert f"{PAGE + 1} to {PAGE + 4} of {PAGE + 4}" in second and "x 099" in second and "Previous" in second


def test_runs_are_those_that_are_recorded_since(browser: Browser) -> None:
    assert "skipped" not in browser.page("/dataset-runs/drives").text
    run("catalog", "maintain", "drives")
    assert "skipped" in browser.page("/dataset-runs/drives").text


def test_a_dataset_that_cannot_be_read_is_listed_with_the_reason(browser: Browser, project: Path) -> None:
    dataset = browser.view_of_datasets.dataset("drives").dataset_id
    run("catalog", "register", "drives", str(write_recording(Path("late.rrd"), "late", [scalars("/a", [1])])))
    shutil.rmtree(project / "lakes/demo/_catalog" / dataset)
    text = browser.page("/datasets").text
    assert "drives cannot be read" in text and f"{OF_A_CLIENT} 1 1" in text
