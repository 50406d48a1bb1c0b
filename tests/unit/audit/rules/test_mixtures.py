from typing import Any

import pytest

from rebalance_core.audit.case import GroupCase
from tests.unit.audit.cases import (
    case_of,
    findings_of,
    join,
    leave,
    listed_at,
    of_unknown_strategy,
    severities,
    topic,
)


def members(**own: Any) -> GroupCase:
    return case_of(topic(), join("x"), join("y", **own))


def test_strategies() -> None:
    (one,) = findings_of("MIXED_STRATEGIES", members(strategy="AVG_BY_CIRCLE"))
    assert "AVG (x), AVG_BY_CIRCLE (y)" in one.summary
    assert findings_of("MIXED_STRATEGIES", members()) == []


def test_config_lists_differ_by_design() -> None:
    lists = [join(who, strategy=f"CONFIG(queues=T/a/{n})") for n, who in enumerate("xy")]
    assert findings_of("MIXED_STRATEGIES", case_of(topic(), *lists)) == []


def test_a_short_mixture_that_is_over() -> None:
    case = case_of(topic(), join("x"), join("y", at=50, strategy="AVG_BY_CIRCLE"), leave("x", 60))
    assert findings_of("MIXED_STRATEGIES", case) == []


def test_versions_warn_only_across_lines() -> None:
    assert severities("MIXED_VERSIONS", members(version="4.9.7")) == ["WARNING"]
    assert severities("MIXED_VERSIONS", members(version="5.1.4")) == ["INFO"]
    assert findings_of("MIXED_VERSIONS", members(version="5.3")) == []


def of_languages(*languages: tuple[str, str], strategy: str = "AVG") -> GroupCase:
    names = [f"m{n}" for n, _ in enumerate(languages)]
    rows = [
        row
        for name, (language, version) in zip(names, languages, strict=True)
        for row in listed_at("a", 500, name, language=language, version=version)
    ]
    return case_of(topic(), *(join(name, strategy=strategy) for name in names), members=rows)


@pytest.mark.parametrize(
    ("strategy", "other", "severity"),
    [
        ("AVG", ("GO", "4.5.2"), "INFO"),
        ("AVG", ("CPP", "3.1.8"), "INFO"),
        ("AVG", ("JAVA", "3.4.9"), "INFO"),
        ("AVG", ("DOTNET", "4.9.7"), "WARNING"),
        ("AVG_BY_CIRCLE", ("CPP", "3.1.8"), "WARNING"),
        ("CONSISTENT_HASH(virtual_nodes=10)", ("GO", "4.5.2"), "WARNING"),
    ],
)
def test_languages_warn_where_they_may_divide_otherwise(
    strategy: str, other: tuple[str, str], severity: str
) -> None:
    case = of_languages(("JAVA", "5.3.3"), other, strategy=strategy)
    (one,) = findings_of("MIXED_LANGUAGES", case)
    assert severities("MIXED_LANGUAGES", case) == [severity]
    assert ("They divide alike" in one.summary) == (severity == "INFO")
    assert severities("MIXED_LANGUAGES", of_unknown_strategy(case)) == ["WARNING"]


def test_a_java_client_of_3_4_9_is_that_for_node() -> None:
    (one,) = findings_of("MIXED_LANGUAGES", of_languages(("JAVA", "5.3.3"), ("JAVA", "3.4.9")))
    assert "JAVA (m0), ali-ons (m1)" in one.summary
    assert findings_of("MIXED_LANGUAGES", of_languages(("JAVA", "5.3.3"), ("JAVA", "4.9.7"))) == []


def test_languages_of_who_is_gone_do_not_count() -> None:
    rows = [*listed_at("a", 500, "x"), *listed_at("a", 500, "y", language="GO")]
    assert findings_of("MIXED_LANGUAGES", case_of(topic(), join("x"), members=rows)) == []


def test_message_models() -> None:
    assert severities("MIXED_MESSAGE_MODELS", members(message_model="BROADCASTING")) == ["ERROR"]
    assert findings_of("MIXED_MESSAGE_MODELS", members(message_model="CLUSTERING")) == []
