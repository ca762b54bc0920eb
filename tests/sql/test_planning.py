"""What a condition certainly has that a table cannot give it, as Lance reads conditions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deployer.platform.sql.planning import condition_fault

SCHEMA = pa.schema(
    [
        pa.field("carrier", pa.string()),
        pa.field("Delay", pa.int32()),
        pa.field("Total Amount", pa.float64()),
        pa.field("date", pa.date32()),
        pa.field("gate", pa.struct([pa.field("number", pa.int32())])),
        pa.field("ok", pa.bool_()),
    ]
)
CASES = {
    "carrier = 'DL'": "",
    'carrier = "DL"': "",
    "delay > 3 AND DELAY < 5": "",
    "`Total Amount` > 3": "",
    "gate.number > 3": "",
    "date < DATE '2024-01-01'": "",
    "NOT ok OR Delay IS NULL": "",
    "only_lance_has_it(Delay)": "",
    "carier LIKE 'a%'": "the column `carier`, which the table does not have",
    "`nope` = 1 OR ok": "the column `nope`, which the table does not have",
    "Delay + 1": "a value of type int64, which is not true or false",
}


@pytest.mark.parametrize("condition", CASES)
def test_conditions(condition: str) -> None:
    assert condition_fault(condition, SCHEMA) == CASES[condition]
