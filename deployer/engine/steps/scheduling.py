"""The choice of the thread that carries out a registration.

The program's calls arrive in one thread. Most registrations find nothing to do; for these a change of threads would
cost more than the work. So a registration begins in that thread, and moves to a worker before a slow step of a
provider.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deployer.engine.steps.run import Run
    from deployer.engine.values.goal import RegistrationAnswer

_here = threading.local()
_SWITCH_SECONDS = 0.0005
_COLLECT = (100_000, 50, 50)


class Postponed(BaseException):
    """Leaves the program's thread: `rest` is the remaining work, for a worker."""

    def __init__(self, rest: Callable[[], Any]) -> None:
        super().__init__()
        self.rest = rest


def in_program_thread() -> bool:
    return getattr(_here, "program", False)


def leave_program_thread(run: Run, rest: Callable[[], RegistrationAnswer]) -> None:
    """Continues with `rest` in a worker. Does nothing in a worker, or in a preview, which changes nothing."""
    if in_program_thread() and not run.settings.dry_run:
        raise Postponed(rest)


class StepExecutor(ThreadPoolExecutor):
    """Calls a function in the caller's thread first; a call that raises `Postponed` is made again in a worker.

    The callee stores the rest that `Postponed` carries, and resumes with it at the second call.
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
def busy_interpreter() -> Iterator[None]:
    """Tunes the interpreter for a run.

    The figures are for 1,000 resources of 20 fields. A worker that returns from the disk waits half a millisecond
    instead of 5 while the program keeps the interpreter busy (an up takes 3 s instead of 21). The garbage collector
    examines less often the hundreds of thousands of objects that the SDK keeps to the end (a preview takes 1.6 s
    instead of 2.5).
    """
    switch, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(*_COLLECT)
    try:
        yield
    finally:
        sys.setswitchinterval(switch)
        gc.set_threshold(*thresholds)
