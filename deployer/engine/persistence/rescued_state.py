"""What becomes of a run whose state cannot be saved: it is kept beside Pulumi.yaml, for `deployer stack import`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from deployer.engine.persistence.deployment import Opened, to_deployment
from deployer.engine.project.project import StackRef
from deployer.errors import DeployerError, EngineFailed
from deployer.files.private import write_private


@contextmanager
def saved_or_kept(stack: StackRef, opened: Opened, failure: BaseException | None, *, changed: bool) -> Iterator[None]:
    """Around the saving of a run's state. When that fails, the state goes into a file, and the error names it.

    `failure` is what ended the run before, which the error says too; a run that `changed` nothing has no more to say.
    Secrets are as encrypted as they are in the state.
    """
    try:
        yield
    except DeployerError as error:
        if not changed:
            if failure is None:
                raise
            return
        file = stack.project.dir / f"{stack.project.name}.{stack.name}.unsaved.json"
        deployment = to_deployment(opened.snapshot, opened.secrets, opened.metadata)
        write_private(file, json.dumps({"version": 3, "deployment": deployment}))
        before = f"{failure}; then " if isinstance(failure, DeployerError) and failure is not error else ""
        raise EngineFailed(
            f"{before}the state could not be saved: {error.what}; it is kept in {file.name}",
            where=error.where,
            remedy=f"{error.remedy or 'mend the cause'}; then run `deployer stack import {file.name} "
            f"--stack {stack.name}`, and `deployer up` to go on",
        ) from error
