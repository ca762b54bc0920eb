"""A program that streams the files of a folder into a table and reads it by Spark, until a file says that all is there:
`python -m tests.spark.together_program FOLDER ROOT SOURCE CHECKPOINT`.

A stream that another change of the table stops is started again, as the user who runs it does. Each line of its output
is the rows of one reading, all of whose batches are whole.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException

from deployer.spark import register
from tests.services.mixed_worker import ROWS, TABLE
from tests.spark.session_program import session
from tests.spark.writes import spark_columns
from tests.tables.lakes import FLIGHTS, flights

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OVER = "over"  #: the file in SOURCE's folder after which no more are put
MOST_STARTS = 50


def started(spark: SparkSession, root: str, source: str, checkpoint: str) -> Any:
    found = (
        spark.readStream.schema(spark_columns(FLIGHTS)).option("maxFilesPerTrigger", 1).parquet(f"{source}/*.parquet")
    )
    stream = found.repartition(2).writeStream.format("deployer").option("root", root)
    stream = stream.option("missing_as_null", "true")  # for the column that is loaded meanwhile
    return stream.option("checkpointLocation", checkpoint).trigger(processingTime="200 milliseconds").start(TABLE)


def read(spark: SparkSession, root: str) -> int:
    """The number of rows, of which each batch has all or none."""
    frame = spark.read.format("deployer").option("root", root).option("columns", "at").load(TABLE)
    first: int = flights(1)["at"].cast("int64")[0].as_py()
    found = [row[0] - first for row in frame.selectExpr("unix_micros(at)").collect()]
    batches = Counter(number // ROWS for number in found)
    assert len({*found}) == len(found) and all(rows == ROWS for rows in batches.values()), batches
    return len(found)


def main(folder: str, root: str, source: str, checkpoint: str) -> None:
    spark = session(Path(folder), cluster=False)
    register(spark)
    for _ in range(MOST_STARTS):
        query = started(spark, root, source, checkpoint)
        try:
            while query.isActive and not Path(source, OVER).exists():
                print(read(spark, root), flush=True)
                time.sleep(0.2)
            if not query.isActive:
                query.awaitTermination()  # raises what stopped it
            query.processAllAvailable()
            query.stop()
        except StreamingQueryException as stopped:
            if "Conflict" not in str(stopped):
                raise
            print(f"started again: {stopped}", file=sys.stderr, flush=True)
        else:
            print(read(spark, root), flush=True)
            spark.stop()
            return
    raise SystemExit("the stream was stopped again and again")


if __name__ == "__main__":
    main(*sys.argv[1:])
