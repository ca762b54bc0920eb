"""What people read where Pulumi says a URN."""

from __future__ import annotations

import pytest

from deployer.provider.urn import without_urns

TABLE = "urn:pulumi:dev::lakes::deployer:Lake$lake:index:Table::nyc.flights"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"skipped, because {TABLE} failed", "skipped, because table/nyc.flights failed", id="table"),
        pytest.param(
            f"2 failed: urn:pulumi:dev::lakes::lake:index:Instance::nyc: no root; {TABLE}: no rows",
            "2 failed: instance/nyc: no root; table/nyc.flights: no rows",
            id="several",
        ),
        pytest.param(
            "urn:pulumi:dev::lakes::aws:s3/bucket:Bucket::bucket/data: denied",
            "aws:s3/bucket:Bucket bucket/data: denied",
            id="of-another-provider",
        ),
        pytest.param("urn:isbn:0451450523 is no resource", "urn:isbn:0451450523 is no resource", id="no-resource"),
    ],
)
def test_urns_are_told_as_addresses(text: str, expected: str) -> None:
    assert without_urns(text) == expected
