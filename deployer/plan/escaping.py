"""Text of others made harmless in Markdown: names and descriptions may hold anything."""

from __future__ import annotations

import re
import unicodedata

_LONGEST = 600  #: characters of one text; what is longer is cut, so that one hostile name cannot fill a comment
_PUNCTUATION = re.compile(r"([\\`*_\[\]|~$])")  # what means something inside a line
_NOT_SEEN = "​"  #: a zero-width space: GitHub sees no mention, reference or address across it
#: What GitHub turns into something else by itself: mentions, issues, addresses.
_LIVE = re.compile(r"(@|#(?=\d)|GH-(?=\d)|https?(?=://)|www(?=\.))", re.IGNORECASE)


def plain(text: str) -> str:
    """One line without control, direction or invisible characters, of bounded length."""
    seen = "".join(_visible(character) for character in text[: _LONGEST + 1])
    line = " ".join(seen.split())
    return line if len(text) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _visible(character: str) -> str:
    if character.isspace():
        return " "
    # Cc, Cf: control and format characters, such as those that turn the reading direction; Cs: half a character.
    return "\ufffd" if unicodedata.category(character) in ("Cc", "Cf", "Cs") else character


def markdown_text(text: str) -> str:
    """`text` as GitHub shows it literally, in prose and in table cells."""
    safe = _LIVE.sub(lambda found: found[0] + _NOT_SEEN, plain(text))
    safe = _PUNCTUATION.sub(r"\\\1", safe)
    return safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def markdown_code(text: str) -> str:
    """`text` as a code span, which holds mentions, references and HTML literally, whatever backticks it has."""
    line = plain(text).replace("|", "\u00a6")  # a table cell ends at a bar, in code too
    if not line:
        return ""
    runs = [len(run) for run in re.findall(r"`+", line)]
    fence = "`" * next(length for length in range(1, len(runs) + 2) if length not in runs)
    padding = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{padding}{line}{padding}{fence}"
