from typing import Any

from rebalance_core.audit.case import GroupCase
from tests.unit.audit.cases import (
    case_of,
    findings_of,
    join,
    leave,
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


def test_message_models() -> None:
    assert severities("MIXED_MESSAGE_MODELS", members(message_model="BROADCASTING")) == ["ERROR"]
    assert findings_of("MIXED_MESSAGE_MODELS", members(message_model="CLUSTERING")) == []
