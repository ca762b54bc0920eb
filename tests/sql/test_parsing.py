"""SQL of users is one complete expression up to its last token; the error names what is wrong and where."""

from __future__ import annotations

import pytest

from deployer.platform.sql.one_expression import NotOneExpression
from deployer.platform.sql.parsing import check_expression

WRONG = [
    ("1=1; drop", "the end of a statement (`;`) at character 4"),
    ("a > 1 -- x", "a comment (`--`) at character 7"),
    ("a > 1 /* x", "a comment (`/*`) at character 7"),
    ("a > 1) or (1=1", "`)` without its other half at character 6"),
    ("(a > 1", "`(` without its other half at character 1"),
    ("a = 'x", "`'` without its other half at character 5"),
    ('"a = 1', '`"` without its other half at character 1'),
    ("`a = 1", "``` without its other half at character 1"),
    ("", "no expression at character 1"),
    (" \n ", "no expression at character 1"),
    ("-- only", "a comment (`--`) at character 1"),
    ("a > 1 LIMIT 1", "`LIMIT` where the end of the expression is expected at character 7"),
    ("a\n  > 1\n LIMIT 1", "`LIMIT` where the end of the expression is expected at character 10"),
    ("1 2", "`2` where the end of the expression is expected at character 3"),
    ("0 ORDER BY a", "`ORDER` where the end of the expression is expected at character 3"),
    ("1=1 UNION SELECT 1", "`UNION` where the end of the expression is expected at character 5"),
    ("é = 'ü' ö", "`ö` where the end of the expression is expected at character 9"),
    ("a >", "its end where an expression is expected at character 4"),
    ("a BETWEEN 1", "its end where `AND` is expected at character 12"),
    ("CASE WHEN a THEN 1", "`WHEN` where the end of the expression is expected at character 6"),
    ("a, b", "a second expression after `,` at character 2"),
    ("a AS b", "a name for the value (`AS`) at character 3"),
    ("a = ?", "the placeholder `?` at character 5"),
    ("(SELECT 1)", "a subquery (`SELECT`) at character 2"),
    ("a IN ( select b FROM t )", "a subquery (`select`) at character 8"),
    ("EXISTS (SELECT 1)", "a subquery (`SELECT`) at character 9"),
    ("a IN (VALUES (1))", "a subquery (`VALUES`) at character 7"),
    ("a IN (WITH x AS (SELECT 1) SELECT 1)", "a subquery (`WITH`) at character 7"),
    ("a IN (TABLE t)", "a subquery (`TABLE`) at character 7"),
    ("a = 1\u200b", "the character '\\u200b' at character 6"),
    ("a = 1\x00", "the character '\\x00' at character 6"),
    ("(" * 100 + "1" + ")" * 100, "parts that are nested too deep at character 1"),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_what_is_not_one_complete_expression_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(NotOneExpression) as caught:
        check_expression(text)
    assert str(caught.value) == says


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "-1.5",
        " 'it''s; -- (' ",
        "TRUE",
        "a > 1",
        "unknown_function(a, 'b') + 1",
        "`Total Amount` > 3 AND \"select\" = 'SELECT'",
        "(`select`)",
        "abs(values) + (values)",
        "'(select 1)' = a",
        "TRY_CAST(delay AS INT)",
        "a::bigint IN (1, 2, -3)",
        "CASE WHEN a THEN 1 ELSE 2 END",
        "at > TIMESTAMP '2013-07-04 18:00:00'",
        "s['a'].b[1] IS NOT DISTINCT FROM x'00'",
        "extract(year FROM a) BETWEEN 1 AND 2",
        "naïve = 'é'",
        "a\n=\n1",
    ],
)
def test_one_complete_expression_is_taken_whatever_its_names_mean(text: str) -> None:
    check_expression(text)
