"""The cause of a failed Spark job, in the texts that Spark gives."""

from __future__ import annotations

import pytest

from deployer.compute.spark.failures import job_failed

TEXTS = {
    "an error of a Python worker": (
        """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/distributed.py", line 158, in __call__
    self._flush(held, written)
OSError: [Errno 28] No space left on device: '/tmp/a'
""",
        "/lake/t.lance: the Spark job failed: [Errno 28] No space left on device: '/tmp/a'; free some disk "
        "space, and run it again",
    ),
    "the last of several": (
        """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/a.py", line 1, in a
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/b.py", line 2, in b
zlib.error: Error -3 while decompressing data

	at org.apache.spark.api.python.BasePythonRunner
""",
        "/lake/t.lance: the Spark job failed: zlib.error: Error -3 while decompressing data; run it again",
    ),
    "an error of deployer": (
        """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/writer.py", line 159, in _write
    raise _unwritten(layout, failure) from failure
deployer.errors.DeployerError: /lake/t.lance: Lance cannot write the rows: no room; check whether the disk is full
""",
        "/lake/t.lance: the Spark job failed: Lance cannot write the rows: no room; check whether the disk is full",
    ),
    "an error of Java": (
        """An error occurred while calling o79.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent \
failure: Lost task 0.0 in stage 1.0 (TID 5) (localhost executor driver): java.io.IOException: No space left on device
	at java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)
""",
        "/lake/t.lance: the Spark job failed: java.io.IOException: No space left on device; free some disk "
        "space, and run it again",
    ),
    "a cause in Java": (
        """An error occurred while calling o79.collectToPython.
: java.lang.RuntimeException: it failed
Caused by: java.io.EOFException: the worker ended
	... 4 more
""",
        "/lake/t.lance: the Spark job failed: java.io.EOFException: the worker ended; run it again",
    ),
    "another text": ("it is over", "/lake/t.lance: the Spark job failed: it is over; run it again"),
    "no text": ("", "/lake/t.lance: the Spark job failed: RuntimeError; run it again"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_cause_is_named(name: str) -> None:
    text, message = TEXTS[name]
    assert str(job_failed(RuntimeError(text), "/lake/t.lance")) == message
