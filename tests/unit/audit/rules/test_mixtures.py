"""Mixtures: strategies, versions, languages, models."""

from typing import Any

import pytest

from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.group_snapshot import Finding, GroupSnapshot
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.times import utc
from tests.unit.audit.snapshots import (
    Row,
    end,
    fact,
    findings_of,
    join,
    leave,
    listed_at,
    ms,
    of_unknown_strategy,
    severities,
    snapshot_of,
    topic,
)


def members(**own: Any) -> GroupSnapshot:
    return snapshot_of(topic(), join("x"), join("y", **own))


def test_strategies() -> None:
    (one,) = findings_of("MIXED_STRATEGIES", members(strategy="AVG_BY_CIRCLE"))
    assert "AVG (x), AVG_BY_CIRCLE (y)" in one.summary
    assert findings_of("MIXED_STRATEGIES", members()) == []


def test_config_lists_differ_by_design() -> None:
    lists = [join(who, strategy=f"CONFIG(queues=T/a/{n})") for n, who in enumerate("xy")]
    assert findings_of("MIXED_STRATEGIES", snapshot_of(topic(), *lists)) == []


def test_a_short_mixture_that_is_over() -> None:
    group = snapshot_of(
        topic(), join("x"), join("y", at=50, strategy="AVG_BY_CIRCLE"), leave("x", 60)
    )
    assert findings_of("MIXED_STRATEGIES", group) == []


def test_versions_warn_only_across_lines() -> None:
    assert severities("MIXED_VERSIONS", members(version="4.9.7")) == ["WARNING"]
    assert severities("MIXED_VERSIONS", members(version="5.1.4")) == ["INFO"]
    assert findings_of("MIXED_VERSIONS", members(version="5.3")) == []


def test_message_models() -> None:
    assert severities("MIXED_MESSAGE_MODELS", members(message_model="BROADCASTING")) == ["ERROR"]
    assert findings_of("MIXED_MESSAGE_MODELS", members(message_model="CLUSTERING")) == []


REFUSED, START = "BROADCASTING_REFUSED", "BROADCAST_START"
ALL = GroupSettings(message_model="BROADCASTING")


def member(client: str = "h@1", at: float = 100) -> Event:
    return join(client, at=at, message_model="BROADCASTING")


def config(allowed: bool) -> Row:
    return fact("GROUP_CONFIG", 0, 1000, broker_name="a", consume_broadcast_enable=allowed)


def test_a_configuration_that_forbids_it() -> None:
    (one,) = findings_of(
        REFUSED, snapshot_of(topic(), member(), settings=ALL, facts=[config(False)])
    )
    assert "a forbids it" in one.summary
    assert (
        findings_of(REFUSED, snapshot_of(topic(), member(), settings=ALL, facts=[config(True)]))
        == []
    )
    assert findings_of(REFUSED, snapshot_of(topic(), join("x"), facts=[config(False)])) == []


def test_pulls_that_were_refused() -> None:
    said = fact("BROADCAST_REFUSED", 100, 200, 50, client_id="x")
    assert (
        "refused pulls 50 times"
        in findings_of(REFUSED, snapshot_of(topic(), facts=[said]))[0].summary
    )


def configured(broker: str, at: float, until: float, allowed: bool) -> Row:
    return fact("GROUP_CONFIG", at, until, broker_name=broker, consume_broadcast_enable=allowed)


def test_refusals_that_every_broker_ended_by_allowing_it() -> None:
    said = fact("BROADCAST_REFUSED", 100, 200, 50, client_id="h@1", broker_name="a")
    both = topic(), topic(broker="b"), member()
    before = [configured(name, 0, 150, False) for name in "ab"]

    def judged(*configurations: Row) -> Any:
        facts = [said, *before, *configurations]
        group = snapshot_of(*both, settings=ALL, facts=facts, stores=())
        (row,) = (row for row in run_rules(group)["findings"] if row["rule_id"] == REFUSED)
        return row

    healed = judged(configured("a", 300, 900, True), configured("b", 400, 900, True))
    assert (healed["severity"], healed["last_ms"]) == ("INFO", ms(200))
    assert f"a, b allow it by the configuration of {utc(ms(400))}" in healed["summary"]
    assert "no later refusal is logged" in healed["summary"]
    allowed = [configured(name, 600, 900, True) for name in "ab"]
    changes = "retryMaxTimes: 16 → 3, consumeBroadcastEnable: false → true"
    logged = [
        fact("GROUP_UPDATED", at, broker_name=name, changes=changes)
        for name, at in (("a", 500), ("b", 510))
    ]
    healed = judged(*allowed, *logged)
    assert (healed["severity"], healed["last_ms"]) == ("INFO", ms(510))
    assert "h@1 consume by BROADCASTING, and a forbade it" in healed["summary"]
    assert healed["summary"].endswith(": an administrator set consumeBroadcastEnable=true.")
    # logged at one broker only, or before the last refusal: not what ended them
    early = [fact("GROUP_UPDATED", 150, broker_name="b", changes=changes)]
    for partly in (logged[:1], logged[:1] + early):
        healed = judged(*allowed, *partly)
        assert healed["severity"] == "INFO"
        assert "no later refusal is logged, and a, b allow it" in healed["summary"]
    for half in ([configured("a", 300, 900, True)], []):
        standing = judged(*half)
        assert (standing["severity"], standing["last_ms"]) == ("ERROR", None)


def test_refusals_that_ended_with_the_members_that_broadcast() -> None:
    said = fact("BROADCAST_REFUSED", 100, 200, 50, client_id="h@1")
    group = snapshot_of(topic(), member(), leave("h@1", 300), settings=ALL, facts=[said])
    (row,) = (row for row in run_rules(group)["findings"] if row["rule_id"] == REFUSED)
    assert (row["severity"], row["last_ms"]) == ("INFO", ms(300))
    back = snapshot_of(
        topic(), member(), leave("h@1", 300), member(at=400), settings=ALL, facts=[said]
    )
    assert severities(REFUSED, back) == ["ERROR"]


def test_a_new_member_without_a_store() -> None:
    group = snapshot_of(topic(read=1), member(), settings=ALL, ends=[end(0, 50, low=20, at=50)])
    assert severities(START, group) == ["INFO"]
    assert "skipped 30 messages" in findings_of(START, group)[0].summary


def test_a_member_whose_id_changed_lost_its_store() -> None:
    again = member(), leave("h@1", 200), member("h@2", 300)
    group = snapshot_of(topic(read=1), *again, settings=ALL, ends=[end(0, 50, low=20, at=50)])
    assert severities(START, group) == ["WARNING"]


def test_nothing_was_left_out() -> None:
    group = snapshot_of(topic(read=1), member(), settings=ALL, ends=[end(0, 0, at=50)])
    assert findings_of(START, group) == []


RULE = "MIXED_LANGUAGES"
RING = "CONSISTENT_HASH(virtual_nodes=10)"
JAVA, GO, CPP, NODE = ("JAVA", "5.3.3"), ("GO", "4.5.2"), ("CPP", "3.1.8"), ("JAVA", "3.4.9")
RUST, DOTNET, PHP = ("RUST", "5.3.1"), ("DOTNET", "4.9.7"), ("PHP", "4.9.7")


def of_languages(
    *languages: tuple[str, str], strategy: str = "AVG", **topics: tuple[str, ...]
) -> GroupSnapshot:
    """Members m0, m1 … of these languages and versions; they read T, or what ``topics`` say."""
    names = [f"m{place}" for place, _ in enumerate(languages)]
    rows = [
        row
        for name, (language, version) in zip(names, languages, strict=True)
        for row in listed_at("a", 500, name, language=language, version=version)
    ]
    joins = (join(name, *topics.get(name, ()), strategy=strategy) for name in names)
    return snapshot_of(topic(read=8), *joins, members=rows)


def found(*languages: tuple[str, str], **own: Any) -> tuple[str, Finding]:
    group = of_languages(*languages, **own)
    (severity,), (one,) = severities(RULE, group), findings_of(RULE, group)
    return severity, one


@pytest.mark.parametrize("other", [GO, CPP, NODE, RUST])
def test_by_avg_all_whose_clients_were_run_divide_alike(other: tuple[str, str]) -> None:
    severity, one = found(JAVA, other)
    assert severity == "INFO"
    assert "With AVG they divide the current 8 queues alike." in one.summary
    for unknown in ("WARNING", "INFO"):  # no known one fits; no dump is there to fit one to
        group = of_unknown_strategy(of_languages(JAVA, other), unknown)
        assert severities(RULE, group) == [unknown]


def test_a_go_member_on_a_ring_of_its_own() -> None:
    severity, one = found(JAVA, GO, strategy=RING)
    assert severity == "ERROR"
    assert (
        f"With {RING} they divide the queues differently: no member reads 2 queues (T a:1,7)."
        in one.summary
    )
    assert one.evidence == {"JAVA": "m0", "GO": "m1", "strategy": RING, "no_owner": "T a:1,7"}
    assert one.remedy == (
        "Set AVG or AVG_BY_CIRCLE in every member: with it, all members divide queues identically."
    )


def test_what_would_be_left_out_in_any_language_is_not_their_fault() -> None:
    """m1 subscribes another topic, so its share of T has no reader in any case."""
    severity, one = found(JAVA, GO, m1=("U",))
    assert (severity, "alike" in one.summary) == ("INFO", True)


def test_clients_that_have_no_strategy_but_avg() -> None:
    severity, one = found(JAVA, CPP, strategy="AVG_BY_CIRCLE")
    assert severity == "ERROR"
    assert one.evidence["no_owner"] == "T a:1,3"
    assert one.evidence["several"] == "T a:4 by m0 and m1, T a:6 by m0 and m1"
    assert one.remedy == "Set AVG in every member: with it, all members divide queues identically."


@pytest.mark.parametrize("other", [DOTNET, PHP])
def test_a_client_of_unknown_share_is_no_sure_error(other: tuple[str, str]) -> None:
    severity, one = found(JAVA, other)
    assert severity == "WARNING"
    assert f"Which queues a client of {other[0]} takes is unknown." in one.summary
    assert one.evidence["unknown"] == "m1"


def test_beside_such_a_client_only_what_others_read_twice_is_sure() -> None:
    severity, one = found(JAVA, DOTNET, GO, strategy=RING)
    assert severity == "ERROR"
    assert ("no_owner" in one.evidence, one.remedy) == (False, None)
    assert "several read 4 queues (T a:0,4-6). Which queues a client of DOTNET" in one.summary


def test_a_java_client_of_3_4_9_is_that_for_node() -> None:
    _, one = found(JAVA, NODE)
    assert "JAVA (m0), ali-ons (m1)" in one.summary
    assert findings_of(RULE, of_languages(JAVA, ("JAVA", "4.9.7"))) == []


def test_languages_of_who_is_gone_do_not_count() -> None:
    rows = [*listed_at("a", 500, "x"), *listed_at("a", 500, "y", language="GO")]
    assert findings_of(RULE, snapshot_of(topic(), join("x"), members=rows)) == []


def test_who_was_listed_before_all_went_is_gone() -> None:
    members = [dict(row) for row in of_languages(JAVA, GO).tables["observed_members"]]
    events = [join("m0"), join("m1"), leave("m0", 600), leave("m1", 600)]
    assert findings_of(RULE, snapshot_of(topic(read=8), *events, members=members)) == []


def test_of_members_that_only_a_list_shows_nothing_is_sure() -> None:
    members = [dict(row) for row in of_languages(JAVA, GO).tables["observed_members"]]
    assert severities(RULE, snapshot_of(topic(read=8), members=members)) == ["INFO"]
    unknown = snapshot_of(join("m0"), join("m1"), members=members)
    assert severities(RULE, unknown) == ["INFO"]
