"""The type `aws:budgets:Budget`. Its id is `ACCOUNT:NAME`."""

from __future__ import annotations

from typing import Any

from tests.aws_provider.kinds import Found, Kind, Values, tag_list, tags_of

_NAMES = {"budgetType": "BudgetType", "timeUnit": "TimeUnit"}


def _account() -> str:
    return "123456789012"  # moto's


def _budget(inputs: Values) -> dict[str, Any]:
    return {
        "BudgetName": inputs["name"],
        "BudgetLimit": {"Amount": inputs["limitAmount"], "Unit": inputs["limitUnit"]},
        "CostFilters": {each["name"]: each["values"] for each in inputs.get("costFilters", ())},
        **{theirs: inputs[ours] for ours, theirs in _NAMES.items()},
    }


def _notification(each: Values) -> dict[str, Any]:
    return {
        "NotificationType": each["notificationType"],
        "ComparisonOperator": each["comparisonOperator"],
        "Threshold": each["threshold"],
        "ThresholdType": each["thresholdType"],
    }


def _create(budgets: Any, inputs: Values) -> str:
    told = [
        {
            "Notification": _notification(each),
            "Subscribers": [{"SubscriptionType": "SNS", "Address": arn} for arn in each["subscriberSnsTopicArns"]],
        }
        for each in inputs.get("notifications", ())
    ]
    budgets.create_budget(
        AccountId=_account(),
        Budget=_budget(inputs),
        NotificationsWithSubscribers=told,
        ResourceTags=tag_list(inputs.get("tags", {})),
    )
    return f"{_account()}:{inputs['name']}"


def _arn(name: str) -> str:
    return f"arn:aws:budgets::{_account()}:budget/{name}"


def _read(budgets: Any, id: str, inputs: Values) -> Found | None:
    account, _, name = id.partition(":")
    try:
        found = budgets.describe_budget(AccountId=account, BudgetName=name)["Budget"]
    except budgets.exceptions.NotFoundException:
        return None
    told = budgets.describe_notifications_for_budget(AccountId=account, BudgetName=name)["Notifications"]
    values = {
        "name": name,
        "limitAmount": found["BudgetLimit"]["Amount"],
        "limitUnit": found["BudgetLimit"]["Unit"],
        **{ours: found[theirs] for ours, theirs in _NAMES.items()},
        "costFilters": [{"name": each, "values": values} for each, values in sorted(found["CostFilters"].items())],
        "notifications": [_read_notification(budgets, account, name, each) for each in told],
        **tags_of(budgets.list_tags_for_resource(ResourceARN=_arn(name))["ResourceTags"]),
    }
    return Found(values, {"arn": _arn(name)})


def _read_notification(budgets: Any, account: str, name: str, told: Values) -> dict[str, Any]:
    who = budgets.describe_subscribers_for_notification(AccountId=account, BudgetName=name, Notification=told)
    return {
        "notificationType": told["NotificationType"],
        "comparisonOperator": told["ComparisonOperator"],
        "threshold": int(told["Threshold"]),
        "thresholdType": told["ThresholdType"],
        "subscriberSnsTopicArns": [each["Address"] for each in who["Subscribers"]],
    }


def _update(budgets: Any, id: str, before: Values, inputs: Values) -> None:
    account, _, name = id.partition(":")
    budgets.update_budget(AccountId=account, NewBudget=_budget(inputs))
    if before.get("notifications") != inputs.get("notifications"):
        raise ValueError("the provider for tests does not change the notifications of a budget")
    old, new = before.get("tags", {}), inputs.get("tags", {})
    if gone := sorted(old.keys() - new.keys()):
        budgets.untag_resource(ResourceARN=_arn(name), ResourceTagKeys=gone)
    if new != old:
        budgets.tag_resource(ResourceARN=_arn(name), ResourceTags=tag_list(new))


def _delete(budgets: Any, id: str, inputs: Values) -> None:
    account, _, name = id.partition(":")
    try:
        budgets.delete_budget(AccountId=account, BudgetName=name)
    except budgets.exceptions.NotFoundException:
        return


KINDS = {
    "aws:budgets/budget:Budget": Kind(
        shape={
            "name": str,
            "budgetType": str,
            "limitAmount": str,
            "limitUnit": str,
            "timeUnit": str,
            "costFilters": [{"name": str, "values": [str]}],
            "notifications": [
                {
                    "notificationType": str,
                    "comparisonOperator": str,
                    "threshold": int,
                    "thresholdType": str,
                    "subscriberSnsTopicArns": [str],
                }
            ],
            "tags": {"*": str},
        },
        needed=("name", "budgetType", "timeUnit"),
        replaces=("name",),
        computed=("arn",),
        create=_create,
        read=_read,
        update=_update,
        delete=_delete,
        service="budgets",
    )
}
