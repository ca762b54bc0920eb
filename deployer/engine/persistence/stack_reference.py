"""`pulumi.StackReference`: outputs of another stack in the same backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deployer.engine.persistence.backend import StackFiles, read_checkpoint
from deployer.engine.persistence.deployment import open_deployment
from deployer.engine.project.backend_url import open_backend
from deployer.engine.project.config import read_keys
from deployer.engine.project.project import Project, StackRef, check_name
from deployer.engine.secrets.encryption import StackKeys
from deployer.engine.values.urns import STACK_TYPE
from deployer.engine.values.values import is_secret
from deployer.errors import InvalidInput, NotFound, Refused


@dataclass(frozen=True)
class StackReferences:
    """Reads stacks of the own backend; stacks of other backends need the CLI. `sealed`: nothing is decrypted."""

    project: Project
    sealed: bool = False

    def read(self, name: str) -> dict[str, Any]:
        """Returns the properties of a stack reference: `name`, `outputs`, `secretOutputNames`."""
        match name.split("/"):
            case [stack]:
                project = self.project.name
            case ["organization", project, stack] | [project, stack]:
                pass
            case [organization, _, _]:
                raise Refused(
                    f"the stack is in the organization {organization!r}, which a file backend does not have",
                    where=name,
                    remedy="install the Pulumi CLI, or name it organization/PROJECT/STACK",
                )
            case _:
                raise InvalidInput("no stack name", where=name, remedy="write organization/PROJECT/STACK")
        check_name("project", project)
        deployment = read_checkpoint(StackFiles(open_backend(self.project), project, stack)).deployment
        if deployment is None:
            raise NotFound("this backend does not have the stack", where=name, remedy="apply that stack first")
        keys = read_keys(StackRef(self.project, stack)) if project == self.project.name else StackKeys()
        opened = open_deployment(deployment, keys, sealed=self.sealed)
        outputs = next((state.outputs for state in opened.snapshot.resources() if state.type == STACK_TYPE), {})
        return {
            "name": name,
            "outputs": dict(outputs),
            "secretOutputNames": sorted(key for key, value in outputs.items() if is_secret(value)),
        }
