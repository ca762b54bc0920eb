"""Names that Lance stores and programs get wrong, for tests that take one through its whole life."""

from __future__ import annotations

NAMES = {
    "space": "Total Amount",
    "hyphen": "total-amount",
    "leading-digit": "2nd place",
    "digits": "2024",
    "german": "Größe",
    "chinese": "数量",
    "emoji": "🍕",
    "quote": "it's",
    "double-quote": 'width "',
    "dollar": "$amount",
    "braces": "{x}",
    "percent": "50%",
    "slash": "km/h",
    "backslash": "a\\b",
    "comma": "Amount, net",
    "colon": "a: b",
    "brackets": "Weight (kg) [net]",
    "angles": "a<b>",
    "hash": "# rows",
    "select": "select",
    "order": "order",
    "group": "group",
    "null": "null",
    "true": "true",
    "leading-space": " lead",
    "trailing-space": "trail ",
    "capital": "UPPER",
    "star": "a*b",
    "equals": "a=b",
    "injection": 'a" or 1=1 --',
    "injection-quote": "a' or '1'='1",
    "injection-comment": "/* x */; drop table t; --",
}

#: The one with most of what could go wrong.
WORST = "Größe, \"net\" ('k$\\g') [%] 2/3; -- 数"
