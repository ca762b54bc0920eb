"""The output of a plan on stdout, in the requested format."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from deployer.app import PlanResult
    from deployer.plan.model import Plan
    from deployer.plan.verdict import Verdict


class Format(StrEnum):
    """The format of a plan."""

    TREE = "tree"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


def print_plan(found: PlanResult, form: Format) -> None:
    """Prints the plan. Markdown fits a pull-request comment; HTML is a self-contained page."""
    plan, against, saved = found.plan, found.against, found.saved
    match form:
        case Format.TREE:
            from deployer.cli.console.output import note, stdout
            from deployer.plan.render.terminal import plan_as_tree
            from deployer.plan.render.totals import apply_command, describe_saved_plan

            stdout().print(plan_as_tree(plan))
            if against is not None:
                note(f"compared with the specs at {against}; live state was not read")
            if saved is not None:
                note(f"{describe_saved_plan(saved)}; to apply exactly this: {apply_command(saved)}")
        case Format.JSON:
            from deployer.cli.console.output import print_json

            print_json(found.to_json())
        case Format.MARKDOWN:
            from deployer.cli.console.output import print_document
            from deployer.plan.render.markdown import plan_as_markdown

            print_document(plan_as_markdown(plan, against=against, saved=saved))
        case Format.HTML:
            from deployer.cli.console.output import print_document
            from deployer.plan.render.html import plan_as_html

            print_document(plan_as_html(plan, against, saved))
        case _:
            assert_never(form)


def print_verdict(plan: Plan, verdict: Verdict, form: Format) -> None:
    """Prints the verdict of the policies, without the plan; notes of the verdict name its targets."""
    match form:
        case Format.TREE:
            from deployer.cli.console.output import stdout
            from deployer.plan.render.terminal import verdict_as_tree

            stdout().print(verdict_as_tree(verdict))
        case Format.JSON:
            from deployer.cli.console.output import print_json
            from deployer.plan.render.json_form import verdict_document

            print_json(verdict_document(plan.instance, verdict, plan.targets))
        case Format.MARKDOWN:
            from deployer.cli.console.output import print_document
            from deployer.plan.render.markdown import verdict_as_markdown

            print_document(verdict_as_markdown(plan.instance, verdict))
        case Format.HTML:
            from deployer.cli.console.output import print_document
            from deployer.plan.render.html import verdict_as_html

            print_document(verdict_as_html(plan.instance, verdict))
        case _:
            assert_never(form)
