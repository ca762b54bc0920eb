"""State in a bucket: what a run asks of S3, what a backend's URL says, and a state that cannot be saved."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployer.engine.project.backend_url import s3_place
from deployer.errors import Conflict, DeployerError, EngineFailed, InvalidInput
from deployer.platform.storage.s3_client import S3Access
from tests.engine.conftest import CHECKPOINT, Lab, backend_url_of, lab_in
from tests.state.faults import Proxy, proxy

CHAIN = """
before = []
for index in range(10):
    before.append(File(f"f{index}", content=f"{index}", opts=Opts(depends_on=before[-1:])))
"""


@pytest.fixture
def lab(request: pytest.FixtureRequest, tmp_path: Path, passphrase: None) -> Lab:
    return lab_in(tmp_path, backend_url_of(request, "s3"))


@pytest.fixture
def between(lab: Lab) -> Iterator[Proxy]:
    """What stands between the stack and its bucket."""
    target = os.environ.get("AWS_ENDPOINT_URL_S3", "")
    if not target.startswith("http://"):
        pytest.skip("needs a server without TLS")
    with proxy(target, {}) as found:
        settings = lab.dir / "Pulumi.yaml"
        address = target.removeprefix("http://")
        settings.write_text(settings.read_text().replace(address, found.url.removeprefix("http://")))
        yield found


@pytest.mark.full
def test_a_step_is_two_puts_and_the_rest_is_constant(lab: Lab, between: Proxy) -> None:
    """One says that a step begins, before its provider is called, and one that it is done, before the next begins."""
    lab.program(CHAIN)
    lab.engine().up(lab.stack())
    asked = Counter(between.requests)
    # lock, meta.yaml, checkpoint, that the journal is folded, history (2)
    assert asked["PUT"] == 2 * 10 + 6
    assert asked["POST"] + asked["DELETE"] <= 4 and asked["GET"] <= 12
    between.requests.clear()
    lab.engine().up(lab.stack())
    asked = Counter(between.requests)
    # lock, .bak, checkpoint, history (2): nothing was journaled
    assert asked["PUT"] == 5
    between.requests.clear()
    lab.engine().preview(lab.stack())
    assert set(between.requests) == {"GET"} and len(between.requests) <= 3


def test_steps_at_once_share_puts(lab: Lab, between: Proxy) -> None:
    lab.program("for index in range(24):\n    File(f'f{index}', wait=0.05)\n")
    lab.engine().up(lab.stack(), parallel=24)
    assert Counter(between.requests)["PUT"] < 2 * 24


PLACES = {
    "s3://b": ("s3://b", S3Access()),
    "s3://b/a/b/?region=eu-west-1&profile=ci": ("s3://b/a/b", S3Access(region="eu-west-1", profile="ci")),
    "s3://b?endpoint=localhost:9000&disableSSL=true&s3ForcePathStyle=true": (
        "s3://b",
        S3Access(endpoint="http://localhost:9000", path_style=True),
    ),
    "s3://b?endpoint=minio.example&use_path_style=false&awssdk=v2": (
        "s3://b",
        S3Access(endpoint="https://minio.example", path_style=False),
    ),
    "s3://b?endpoint=http://localhost:9000&disable_https=1": ("s3://b", S3Access(endpoint="http://localhost:9000")),
    "s3://b?ssetype=aws:kms&kmskeyid=alias/a": ("s3://b", S3Access(encryption="aws:kms", kms_key="alias/a")),
}


@pytest.mark.parametrize("url", PLACES)
def test_what_a_url_says(url: str) -> None:
    assert s3_place(url) == PLACES[url]


BAD_URLS = {
    "s3://": "no bucket in the backend's URL",
    "s3://key:secret@bucket": "no bucket in the backend's URL",
    "s3://b?regoin=a": "an option 'regoin' that this engine does not know; use region, endpoint",
    "s3://b?disableSSL=perhaps": "'perhaps' is neither true nor false",
    "s3://b?ssetype=rot13": "'rot13' is not an encryption of S3",
}


@pytest.mark.parametrize("url", BAD_URLS)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        s3_place(url)
    assert BAD_URLS[url] in f"{refused.value.what}; {refused.value.remedy}" and "secret" not in str(refused.value)


def test_a_state_that_moved_under_a_run_is_not_written_over(lab: Lab) -> None:
    lab.up('File("a")')
    before = lab.objects.get(CHECKPOINT)
    lab.program('pulumi.log.info("x"); File("a", content="2")')
    moved = before.replace(b'"metadata"', b' "metadata"')

    def move(event: object) -> None:
        lab.objects.put(CHECKPOINT, moved)

    with pytest.raises(EngineFailed, match=r"another process changed the stack's state.*demo\.dev\.unsaved\.json"):
        lab.engine().up(lab.stack(), on_event=move)
    assert lab.objects.get(CHECKPOINT) == moved


@pytest.mark.parametrize("fault", ["deny", "expired"])
def test_a_run_whose_state_cannot_be_saved_goes_on_from_a_file(lab: Lab, between: Proxy, fault: str) -> None:
    lab.program(CHAIN)

    def fail_later(event: object) -> None:
        if len(lab.log()) == 4:
            between.rates = {fault: 1.0}  # type: ignore[dict-item]

    with pytest.raises(EngineFailed) as failed:
        lab.engine().up(lab.stack(), on_event=fail_later)
    words = str(failed.value)
    assert "the state could not be saved" in words and f"s3://{lab.at[5:].partition('?')[0]}" in words
    assert "run `deployer stack import demo.dev.unsaved.json --stack dev`, and `deployer up` to resume" in words
    between.rates = {}
    with pytest.raises(Conflict, match="another run holds the stack"):  # it could not be given back either
        lab.engine().up(lab.stack())
    assert len(lab.engine().cancel(lab.stack())) == 1
    lab.engine().restore(lab.stack(), json.loads((lab.dir / "demo.dev.unsaved.json").read_text()))
    lab.up()
    assert Counter(lab.log()) == {f"create f{index}.txt": 1 for index in range(10)}


def test_a_run_that_changed_nothing_says_only_why(lab: Lab, between: Proxy) -> None:
    lab.up(CHAIN)
    (lab.dir / "demo.dev.unsaved.json").unlink(missing_ok=True)
    between.rates = {"deny": 1.0}
    with pytest.raises(DeployerError, match="access to the bucket was denied") as denied:
        lab.engine().up(lab.stack())
    assert "unsaved" not in str(denied.value) and not (lab.dir / "demo.dev.unsaved.json").exists()


def test_a_profile_in_the_url_counts_and_no_token_of_another_goes_with_it(
    lab: Lab, between: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    between.rule = lambda asked: seen.add(asked.token)
    file = tmp_path / "credentials"
    file.write_text("[states]\naws_access_key_id = AKSTATES\naws_secret_access_key = test\n", encoding="utf-8")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-another")
    settings = lab.dir / "Pulumi.yaml"
    settings.write_text(settings.read_text().replace("?region", "?profile=states&region"))
    lab.program('File("a")')
    lab.engine().up(lab.stack())
    assert seen == {""}
