"""Errors of users as Spark prints them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from deployer.errors import DeployerError

P = ParamSpec("P")
R = TypeVar("R")


def reports_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Lets Spark print the error of a user without the calls inside of deployer that led to it."""

    @wraps(function)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except DeployerError as error:
            raise error.with_traceback(None) from None

    return reporting
