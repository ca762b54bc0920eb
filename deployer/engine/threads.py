"""Which thread carries out a registration.

The SDK hands every registration to its event loop's executor. Most of them find nothing to do, and then the change
of threads would cost more than the work. So a registration begins in the program's own thread, and moves to a worker
when it comes to a step that a provider takes its time for.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deployer.engine.goal import Registered
    from deployer.engine.run import Run

_here = threading.local()
_SWITCH_SECONDS = 0.0005


class Postponed(BaseException):
    """Leaves the program's thread: `rest` is what is still to be done, in a worker."""

    def __init__(self, rest: Callable[[], Any]) -> None:
        super().__init__()
        self.rest = rest


def in_program_thread() -> bool:
    return getattr(_here, "program", False)


def leave_program_thread(run: Run, rest: Callable[[], Registered]) -> None:
    """Goes on with `rest` in a worker; does nothing in a worker, and in a preview, which changes nothing."""
    if in_program_thread() and not run.settings.dry_run:
        raise Postponed(rest)


class StepExecutor(ThreadPoolExecutor):
    """Calls in the caller's thread first; a call that raises `Postponed` is made again in a worker.

    Who is called keeps what `Postponed` carries, and takes it up the second time.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        _here.program = True
        try:
            result = fn(*args, **kwargs)
        except Postponed:
            return super().submit(fn, *args, **kwargs)
        except Exception as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return failed
        finally:
            _here.program = False
        done: Future[Any] = Future()
        done.set_result(result)
        return done


@contextmanager
def quick_switches() -> Iterator[None]:
    """Lets a worker that comes back from the disk go on at once, while the program keeps the interpreter busy.

    With the interpreter's default of 5 ms each return from a system call waits that long for its turn.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
