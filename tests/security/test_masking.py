"""F31: known secrets are masked in what is printed and kept, however they are written there."""

from __future__ import annotations

import base64
import html
import json
import re
import sys
import urllib.parse
from collections.abc import Iterator

import pytest

from deployer.cli.console.streams import shown_streams, unmasked_rows
from deployer.platform.text import masking

SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxR fiCY"<é>'
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----\n"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[masking.KnownSecrets]:
    for name in ("GITHUB_TOKEN", "PULUMI_CONFIG_PASSPHRASE"):
        monkeypatch.delenv(name, raising=False)
    with masking.scope() as found:
        found.add(SECRET, "the secret")
        found.add(KEY, "the key")
        yield found


WRITTEN = {
    "as it is": SECRET,
    "in a text": f"password={SECRET};",
    "JSON": json.dumps({"a": SECRET}),
    "JSON as UTF-8": json.dumps({"a": SECRET}, ensure_ascii=False),
    "JSON in JSON": json.dumps(json.dumps({"a": "x" + KEY.splitlines()[1]})),
    "Python": repr([SECRET]),
    "HTML": f"<td>{html.escape(SECRET)}</td>",
    "URL": f"https://x/?a={urllib.parse.quote(SECRET, safe='')}",
    "URL with slashes": f"https://x/{urllib.parse.quote(SECRET)}",
    "form": urllib.parse.urlencode({"a": SECRET}),
    "small escapes": re.sub("%..", lambda found: found[0].lower(), urllib.parse.quote(SECRET, safe="")),
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64 for URLs": base64.urlsafe_b64encode(SECRET.encode()).decode(),
    "basic authentication": "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode(),
    "basic, one on": "Basic " + base64.b64encode(f"you:{SECRET}!".encode()).decode(),
    "basic, two on": "Basic " + base64.b64encode(f"jane:{SECRET}!!".encode()).decode(),
    "hexadecimal": SECRET.encode().hex(),
    "all of a key": KEY,
    "one line of a key": "  " + KEY.splitlines()[2],
    "a key in JSON": json.dumps({"key": KEY}),
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN.keys())
def test_a_secret_is_masked_however_it_is_written(text: str, known: masking.KnownSecrets) -> None:
    """F31: a token in a message, an URL, a header or a document."""
    shown = masking.masked(text)
    assert masking.MASK in shown
    for part in ("wJalr", "FEMI", "d0phbHJ", "MIIEvQ", "AQEFAASC", SECRET.encode().hex()[8:20]):
        assert part not in shown
    assert known.name_in(text) in ("the secret", "the key")


def test_short_secrets_are_masked_where_they_stand_alone() -> None:
    """F31: a short secret would make other words unreadable, and the shortest ones everything."""
    with masking.scope() as known:
        for text in ("abc", "", "   ", "flights7"[:6], "12345", "true"):
            known.add(text, "a short one")
        assert masking.masked("abc flight flights true=true 12345") == "abc [secret] flights [secret]=[secret] 12345"
        assert known.name_in("flight") == "a short one" and known.name_in("a flight") == ""


@pytest.mark.parametrize(
    ("variable", "is_masked"),
    [
        ("DEPLOYER_TOKEN_CATALOG", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("AWS_SESSION_TOKEN", True),
        ("PULUMI_CONFIG_PASSPHRASE", True),
        ("GITHUB_TOKEN", True),
        ("AWS_ACCESS_KEY_ID", False),
        ("AWS_REGION", False),
        ("HOME", False),
    ],
)
def test_credentials_of_the_environment_are_known(
    variable: str, is_masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F31: the passphrase, tokens and AWS's credentials."""
    monkeypatch.setenv(variable, "Zx9-some-value-8y")
    with masking.scope():
        assert ("Zx9" not in masking.masked("it is Zx9-some-value-8y here")) is is_masked
        assert masking.masked_values({"a": ["Zx9-some-value-8y", 7]}) == {
            "a": [masking.MASK if is_masked else "Zx9-some-value-8y", 7]
        }


def test_credentials_of_simulators_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """F31: `test` is what AWS's simulators are given, and a word."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with masking.scope():
        assert masking.masked("a test of it") == "a test of it"


def test_secrets_that_hold_each_other_are_masked_whole() -> None:
    """F31: masking the shorter one first would leave the rest of the longer one."""
    with masking.scope() as known:
        known.add("password", "short")
        known.add("password-of-production", "long")
        assert masking.masked("password-of-production password") == "[secret] [secret]"


def test_what_is_printed_is_masked_across_writes(
    known: masking.KnownSecrets, capsys: pytest.CaptureFixture[str]
) -> None:
    """F31: programs, rules and commands print in parts."""
    with shown_streams():
        sys.stdout.write(SECRET[:10])
        sys.stdout.write(f"{SECRET[10:]}\nand ")
        print(SECRET, file=sys.stderr)
        sys.stdout.write(SECRET)
        sys.stdout.flush()
        with unmasked_rows():
            sys.stdout.write("row of data: password\n")
        known.add("password", "one more")
        sys.stdout.write("no end of line: password")
    out, err = capsys.readouterr()
    assert out == "[secret]\nand [secret]row of data: password\nno end of line: [secret]"
    assert err == "[secret]\n"


def test_secrets_are_known_no_longer_than_the_command() -> None:
    """F31: a process that runs several commands keeps nothing of them."""
    with masking.scope() as outer:
        with masking.scope() as inner:
            inner.add("something-secret", "it")
        assert outer is inner and masking.masked("something-secret") == masking.MASK
    assert masking.masked("something-secret") == "something-secret"
