"""Users' errors in the form that Spark prints."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from deployer.errors import DeployerError

P = ParamSpec("P")
R = TypeVar("R")

_OPTIONS = (
    (re.compile(r"--(columns|keys|range|since|until|where), or `\1` in Python"), r"the option `\1`"),
    (re.compile(r"--at\b"), "the option `version`"),
    (re.compile(r"(write|use) --(columns|keys|range|since|until|where)\b"), r"\1 the option `\2`"),
    (re.compile(r"--(columns|keys|range|since|until|where)\b"), r"the option `\1`"),
)


def in_options(text: str) -> str:
    """Returns the text with the options of a reading in place of those of commands."""
    for pattern, words in _OPTIONS:
        text = pattern.sub(words, text)
    return text


def reports_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Makes Spark print a user's error with the names of its options, and without deployer's stack trace."""

    @wraps(function)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except DeployerError as error:
            error.what, error.remedy = in_options(error.what), in_options(error.remedy)
            error.where = None if error.where is None else in_options(str(error.where))
            raise error.with_traceback(None) from None

    return reporting
