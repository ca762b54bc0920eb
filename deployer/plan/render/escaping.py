"""Escapes untrusted text for Markdown: names and descriptions may contain anything."""

from __future__ import annotations

import re

from deployer.platform.text.visible import visible

_LONGEST = 600  #: characters of one text; a longer text is shortened, so that one hostile name cannot fill a comment
_PUNCTUATION = re.compile(r"([\\`*_\[\]|~$])")  # what means something inside a line
#: characters that begin a heading, a list or a rule at the beginning of a line
_BLOCK = re.compile(r"^(\d*)([.)]|[#+=-]+)(?=\s|$)")
#: texts that GitHub replaces: mentions, issues, addresses, emoji
_LIVE = re.compile(
    r"(@|#(?=\d)|GH-(?=\d)|(?:https?|ftp)(?=://)|(?:mailto|xmpp)(?=:)|www(?=\.)"
    r"|:(?=(?:[+-]1|100|1234|[\w+-]*[a-z][\w+-]*):))",
    re.IGNORECASE,
)
_PARTED = (
    "\0"  #: a placeholder for the entity until other characters are escaped; texts from `visible` never contain it
)
_ENTITY = "&zwnj;"  #: a character without width, across which GitHub sees no mention, reference, address or emoji


def plain(text: str) -> str:
    """Returns one line without control, direction or invisible characters, of bounded length."""
    line = visible(" ".join(text[: _LONGEST + 1].split()))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def markdown_text(text: str) -> str:
    """Returns `text` in a form that GitHub shows literally, in prose and in table cells."""
    safe = _PUNCTUATION.sub(r"\\\1", _LIVE.sub(rf"\1{_PARTED}", plain(text)))
    safe = _BLOCK.sub(r"\1\\\2", safe)
    return safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace(_PARTED, _ENTITY)


def markdown_code(text: str) -> str:
    """Returns `text` as a code span, which shows mentions, references and HTML literally, whatever backticks the text
    has."""
    line = plain(text).replace("|", "\u00a6")  # a table cell ends at a bar, in code too
    if not line:
        return ""
    runs = [len(run) for run in re.findall(r"`+", line)]
    fence = "`" * next(length for length in range(1, len(runs) + 2) if length not in runs)
    padding = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{padding}{line}{padding}{fence}"
