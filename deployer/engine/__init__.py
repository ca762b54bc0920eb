"""Running the stack's Pulumi program: the embedded engine, or the official CLI, behind one interface.

Only `providers/inprocess.py` depends on lakes. Importing this package loads neither Pulumi nor gRPC; choosing an engine
does.

`deployer.app` and `deployer.cli` may import it.
"""

from deployer.engine.choose import choose_engine, hold_stack, prepare_program
from deployer.engine.interfaces.engine import (
    Diagnostic,
    Engine,
    Event,
    OnEvent,
    Operation,
    OutputsChanged,
    PlanResult,
    ProgramOutput,
    StepFailed,
    StepFinished,
    StepProgress,
    StepStarted,
    UpResult,
)
from deployer.engine.project.project import Project, StackRef, read_project

__all__ = [
    "Diagnostic",
    "Engine",
    "Event",
    "OnEvent",
    "Operation",
    "OutputsChanged",
    "PlanResult",
    "ProgramOutput",
    "Project",
    "StackRef",
    "StepFailed",
    "StepFinished",
    "StepProgress",
    "StepStarted",
    "UpResult",
    "choose_engine",
    "hold_stack",
    "prepare_program",
    "read_project",
]
