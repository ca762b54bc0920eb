"""Converts errors of loads to errors of writes from Spark: remedies name Spark's options instead of those of `deployer
ingest`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from deployer.errors import DeployerError

P = ParamSpec("P")
R = TypeVar("R")

_OPTIONS = (
    (re.compile(r"(?:with )?--bad-rows FILE"), "by the option `bad_rows`"),
    (re.compile(r"give --bad-rows another name"), "give `bad_rows` another name"),
    (re.compile(r"give another --bad-rows"), "give another `bad_rows`"),
    (re.compile(r"(?:with )?--on-duplicate skip"), "by the option `on_duplicate` = skip"),
    (re.compile(r"leave --on-duplicate out"), "leave the option `on_duplicate` out"),
    (re.compile(r"(?:with )?--missing-as-null"), "by the option `missing_as_null` = true"),
    (re.compile(r"(?:with )?--ignore-extra"), "by the option `ignore_extra` = true"),
    (re.compile(r"run the (?:ingest|load) again with --job-id (\S+?)(?=[:,]|$)"), r"write with the `job_id` \1 again"),
    (re.compile(r"run (?:the (?:ingest|load)|it) again"), "write the rows again"),
    (re.compile(r"--(max-bad-rows|job-id)"), r"`\1`"),
)


def in_words_of_spark(text: str) -> str:
    """Returns the text with the options of a write in place of those of the command."""
    for pattern, words in _OPTIONS:
        text = pattern.sub(words, text)
    return text.replace("`max-bad-rows`", "`max_bad_rows`").replace("`job-id`", "`job_id`")


def reports_in_options(function: Callable[P, R]) -> Callable[P, R]:
    """Rewords the errors of the function for users of Spark, which prints them without a stack trace."""

    @wraps(function)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except DeployerError as error:
            error.what, error.remedy = in_words_of_spark(error.what), in_words_of_spark(error.remedy)
            raise error.with_traceback(None) from None

    return reporting
