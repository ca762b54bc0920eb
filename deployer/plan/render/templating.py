"""Self-contained HTML pages from the templates of this package; everything that they show is escaped."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from deployer.plan.render.escaping import plain
from deployer.text.formatting import count, size


def render_page(template: str, **values: Any) -> str:
    """The page of `template`: `css` is the stylesheet of all pages, `plain` makes texts of others one clean line."""
    environment = _environment()
    loader = environment.loader
    assert loader is not None  # noqa: S101 -- set where the environment is made
    css = Markup(loader.get_source(environment, "page.css")[0])  # noqa: S704 -- a file of this package
    return environment.get_template(template).render(css=css, count=count, size=size, **values).rstrip() + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("deployer.plan", "templates"), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["plain"] = lambda value: plain(str(value))
    environment.filters["prose"] = _prose
    return environment


def _prose(value: Any) -> Markup:
    """One of this project's sentences as one clean line, with text between backticks as code."""
    parts = plain(str(value)).split("`")
    if not len(parts) % 2:  # one has no partner
        return escape("`".join(parts))
    return Markup().join(Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts))
