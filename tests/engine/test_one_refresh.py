"""A run that applies what was previewed starts from what the preview read, and reads no resource a second time."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.engine.conftest import Lab
from tests.engine.provider_files import FileProvider
from tests.engine.test_steps import ops


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each resource was read."""
    found: Counter[str] = Counter()
    real = FileProvider.read

    async def read(self: FileProvider, request: object) -> object:
        found[request.resource_id] += 1  # type: ignore[attr-defined]
        return await real(self, request)  # type: ignore[arg-type]

    monkeypatch.setattr(FileProvider, "read", read)
    return found


def test_what_the_preview_read_is_not_read_again(lab: Lab, reads: Counter[str]) -> None:
    program = 'File("a", content="1"); File("b", content="2"); File("c", content="3")'
    lab.up(program)
    (lab.root / "files" / "a.txt").write_text("edited")
    (lab.root / "files" / "b.txt").unlink()
    reads.clear()
    plan = lab.preview()
    assert ops(plan) == {"a": "update", "b": "create", "c": "same"}
    assert reads == {"a.txt": 1, "b.txt": 1, "c.txt": 1}
    (lab.root / "files" / "c.txt").write_text("after the plan")
    applied = lab.up(refreshed=plan.refreshed)
    assert reads == {"a.txt": 1, "b.txt": 1, "c.txt": 1}
    assert ops(applied) == ops(plan)
    assert lab.files() == {"a.txt": "1", "b.txt": "2", "c.txt": "after the plan"}
    assert ops(lab.up()) == {"a": "same", "b": "same", "c": "update"}


def test_a_resource_with_secrets_is_read_again(lab: Lab, reads: Counter[str]) -> None:
    """A preview decrypts nothing, so its reading of such a resource lacks the secrets."""
    program = 'File("a", secret=pulumi.Output.secret("s3cret"), content="1"); File("b", content="2")'
    lab.up(program)
    reads.clear()
    plan = lab.preview()
    lab.up(refreshed=plan.refreshed)
    assert reads == {"a.txt": 2, "b.txt": 1}


def test_a_record_that_changed_since_is_read_again(lab: Lab, reads: Counter[str]) -> None:
    lab.up('File("a", content="1"); File("b", content="2")')
    plan = lab.preview()
    lab.up('File("a", content="other"); File("b", content="2")')
    reads.clear()
    lab.up(refreshed=plan.refreshed)
    assert reads == {"a.txt": 1}
