"""Untrusted text in a safe form: characters that control a terminal or the log of a CI system are shown as escapes.

Names, descriptions, rows, messages and all other texts from specs, state or programs go through `visible` before they
are printed. The console of the commands does that for all of them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

#: filters that are applied, in order, to each text before it is shown, such as masks of secrets
FILTERS: list[Callable[[str], str]] = []

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
#: invisible characters that Unicode counts as letters and marks (Default_Ignorable_Code_Point)
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0") | {
    *map(chr, range(0xFE00, 0xFE10)),
    *map(chr, range(0xE0100, 0xE01F0)),
}
#: the selector that makes a symbol an emoji, which people write
_EMOJI = re.compile("(?<=[#*0-9\u2000-\u33ff\U0001f000-\U0001faff])\ufe0f")
#: Commands of GitHub, Azure Pipelines and TeamCity, which these find anywhere in a line.
_COMMAND = re.compile(r"(##\w{0,40})\[")
#: Commands of GitHub, which begin a line after blanks, and headings of Buildkite; colours may come before both.
_FIRST = re.compile(r"(?:\s|\x1b\[[0-9;]*m)*:(?=:)|(?:\x1b\[[0-9;]*m)*([-+~^])\1\1(?= )")
#: text that would be a command of GitHub at the beginning of a line; the same in a YAML document
_WORD = re.compile(r"(?<!\S)::")
_QUOTED_WORD = re.compile(r"(?<=[\s\"]):(?=:)")
_REMEMBERED = 10_000  #: largest number of cached characters


class _Forms(dict[int, str]):
    """The visible form of each character, for `str.translate`."""

    def __init__(self, kept: str, escaped: Callable[[int], str]) -> None:
        super().__init__((ord(character), character) for character in kept)
        self._escaped = escaped

    def __missing__(self, code: int) -> str:
        shown = chr(code) if _is_visible(chr(code)) else self._escaped(code)
        if len(self) < _REMEMBERED:
            self[code] = shown
        return shown


def _is_visible(character: str) -> bool:
    # Python's unprintable characters: control, format, surrogate, private and unassigned ones, and blanks except " "
    if character.isprintable():
        return character not in _INVISIBLE
    return unicodedata.category(character) == "Zs"


def _escape(code: int) -> str:
    if (named := _NAMED.get(chr(code))) is not None:
        return named
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_LINE = _Forms("", _escape)
_LINES = _Forms("\n\t", _escape)
_JSON = _Forms("\n", _json_escape)
_YAML = _Forms("\n", lambda code: f"\\U{code:08x}")


def visible(text: str) -> str:
    """Returns one line without control, format or invisible characters: `\\n`, `\\x1b`, `\\u202e` stand in their
    places."""
    for each in FILTERS:
        text = each(text)
    return _shown(text, _LINE)


def visible_lines(text: str) -> str:
    """Returns the same for text of several lines, which keeps its line ends and tabs."""
    for each in FILTERS:
        text = each(text)
    return _shown(text, _LINES)


def is_visible(text: str) -> bool:
    """Returns whether a text has only visible characters, and is not a command of a CI system wherever a line
    breaks."""
    return _translated(text, _LINE) == text and not _COMMAND.search(text) and not _WORD.search(text)


def visible_yaml(text: str) -> str:
    """Returns a YAML document in which each text that is not `is_visible` is in double quotes with YAML's escapes."""
    text = _COMMAND.sub(r"\1\\x5b", _translated(text, _YAML))
    return _QUOTED_WORD.sub(r"\\x3a", text)


def _shown(text: str, forms: _Forms) -> str:
    text = _translated(text, forms)
    return _COMMAND.sub(r"\1\\[", text) if "##" in text else text


def _translated(text: str, forms: _Forms) -> str:
    if text.isascii() and text.isprintable():
        return text
    parts = _EMOJI.split(text) if "\ufe0f" in text else [text]
    return "\ufe0f".join(part.translate(forms) for part in parts)


def visible_text(text: Text) -> Text:
    """Returns the same for text with styles; the text is unchanged where nothing has to be escaped."""
    plain = text.plain
    if visible(plain) == plain:
        return text
    if FILTERS:  # a mask may remove text that has a style
        return text.blank_copy(visible(plain))
    from rich.text import Span

    places = sorted({0, len(plain), *(place for span in text.spans for place in (span.start, span.end))})
    parts = [visible(plain[start:end]) for start, end in pairwise(places)]
    moved, length = {0: 0}, 0
    for place, part in zip(places[1:], parts, strict=True):
        length += len(part)
        moved[place] = length
    shown = text.blank_copy("".join(parts))
    shown.spans = [Span(moved[span.start], moved[span.end], span.style) for span in text.spans]
    return shown


def without_command(line: str) -> str:
    """Returns a line, with colours, that no CI system reads as a command or a heading: a backslash breaks its
    beginning.

    The result for the beginning of a line is the beginning of the result for the whole line.
    """
    if "##" in line:
        line = _COMMAND.sub(r"\1\\[", line)
    found = _FIRST.match(line)
    return f"{line[: found.end()]}\\{line[found.end() :]}" if found else line


def is_command(line: str) -> bool:
    """Returns whether a CI system would read a line as a command or a heading."""
    return without_command(line) != line


def json_text(document: Any, *, indent: int | None = None) -> str:
    """Returns a JSON document without control sequences for terminals and logs. Its value equals that of
    `json.dumps`."""
    text = json.dumps(document, indent=indent, ensure_ascii=False, default=str)
    if FILTERS:
        text = json.dumps(_filtered(json.loads(text)), indent=indent, ensure_ascii=False)
    return visible_json(text)


def visible_json(text: str) -> str:
    """Returns the text of one or more JSON documents, with JSON's escapes for invisible characters."""
    if not (text.isascii() and text.isprintable()):
        text = text.translate(_JSON)
    return _COMMAND.sub(r"\1\\u005b", text) if "##" in text else text


def _filtered(value: Any) -> Any:
    match value:
        case str():
            for each in FILTERS:
                value = each(value)
            return value
        case Mapping():
            return {_filtered(key): _filtered(item) for key, item in value.items()}
        case list():
            return [_filtered(item) for item in value]
        case _:
            return value


def margined(text: str) -> Iterable[str]:
    """Returns the lines of a message. Lines after the first begin with a bar, so that none looks like a line of
    deployer."""
    first, *rest = text.rstrip("\r\n").replace("\r\n", "\n").split("\n")
    return (first, *(f"  | {line}" for line in rest))


def shortened(value: object, longest: int = 120) -> str:
    """Returns a value as Python writes it, without control characters, cut when it is long: for messages."""
    text = repr(value) if not isinstance(value, str) or len(value) <= longest else repr(value[:longest]) + "…"
    return text if len(text) <= 2 * longest else text[: 2 * longest] + "…"
