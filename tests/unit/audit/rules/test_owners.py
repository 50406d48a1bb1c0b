"""Queues with two owners, with none, and members with one id."""

import pytest

from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.night import has_ended
from rebalance_core.model.events import CONSUMER_LOST, CONSUMER_SUSPEND, Event
from rebalance_core.model.times import utc
from tests.unit.audit.snapshots import (
    Row,
    commit,
    end,
    fact,
    findings_of,
    join,
    leave,
    listed_at,
    ms,
    of_member,
    queue_row,
    severities,
    snapshot_of,
    topic,
)

DOUBLE_OWNER = "DOUBLE_OWNER"
MIXED = join("x"), join("y", strategy="AVG_BY_CIRCLE")


def held(client: str, at: float, number: int = 0) -> Row:
    return queue_row("T", "a", number, at, client_id=client)


def test_two_ids_hold_a_queue() -> None:
    (one,) = findings_of(DOUBLE_OWNER, snapshot_of(topic(), *MIXED))
    assert "1 queue of T (a:1)" in one.summary
    assert one.queue_id == 1


def test_one_id_twice() -> None:
    group = snapshot_of(topic(), join("x"), join("x", channel="x:2"))
    assert "by x (2 processes)" in findings_of(DOUBLE_OWNER, group)[0].summary


def test_broadcasting_and_a_change_under_way() -> None:
    each = join("x", message_model="BROADCASTING"), join("y", message_model="BROADCASTING")
    assert findings_of(DOUBLE_OWNER, snapshot_of(topic(), *each)) == []
    late = join("x", at=998), join("x", at=998, channel="x:2")
    assert findings_of(DOUBLE_OWNER, snapshot_of(topic(), *late)) == []


def test_a_suspended_holder_reads_nothing() -> None:
    paused = of_member(CONSUMER_SUSPEND, "x", 50)
    assert (
        findings_of(DOUBLE_OWNER, snapshot_of(topic(), join("x"), paused, join("y", at=100))) == []
    )


def test_dumps_that_show_two_owners_at_rest() -> None:
    group = snapshot_of(topic(), join("x"), join("y"), owned=[held("x", 500), held("y", 500)])
    assert severities(DOUBLE_OWNER, group) == ["ERROR"]
    assert "as dumps show, by x, y" in findings_of(DOUBLE_OWNER, group)[0].summary


@pytest.mark.parametrize(("dumped", "severity"), [(900, "INFO"), (700, "ERROR")])
def test_what_dumps_showed_is_over_when_one_of_the_two_went(dumped: int, severity: str) -> None:
    seen, dump = [held("x", 500), held("y", 500)], fact("DUMP", dumped, command="consumerStatus")
    happened = topic(), join("x"), join("y"), leave("y", 800)
    group = snapshot_of(*happened, owned=seen, facts=[dump])
    (one,) = findings_of(DOUBLE_OWNER, group)
    assert severities(DOUBLE_OWNER, group) == [severity]
    assert one.last_ms == (ms(800) if severity == "INFO" else None)


def test_a_client_that_is_seen_again_after_another() -> None:
    observations = [held("x", 500), held("y", 520), held("x", 540)]
    assert severities(
        DOUBLE_OWNER, snapshot_of(topic(), join("x"), join("y"), owned=observations)
    ) == ["ERROR"]
    handed_over = [held("x", 500), held("y", 520), held("y", 540)]
    assert (
        findings_of(DOUBLE_OWNER, snapshot_of(topic(), join("x"), join("y"), owned=handed_over))
        == []
    )


def test_dumps_before_and_after_a_change() -> None:
    observations = [held("y", 500), held("x", 520)]
    group = snapshot_of(topic(), join("y"), join("x", at=510), owned=observations)
    assert findings_of(DOUBLE_OWNER, group) == []
    apart = [held("x", 500), held("y", 700)]
    assert findings_of(DOUBLE_OWNER, snapshot_of(topic(), join("x"), join("y"), owned=apart)) == []


DUPLICATE, HALF_OPEN, MANY = "DUPLICATE_CLIENT_ID", "HALF_OPEN_DUPLICATE", "MEMBERS_MULTIPLIED"
TWICE = topic(), join("x"), join("x", at=100, channel="x:2"), join("y", at=110)


def lost(channel: str, at: float) -> Event:
    return of_member(CONSUMER_LOST, "x", at, channel)


def test_two_processes_of_one_id() -> None:
    group = snapshot_of(*TWICE)
    (one,) = findings_of(DUPLICATE, group)
    assert one.client_id == "x"
    assert "T a:0-1 read twice" in one.summary
    assert "T a:2 read by no member" in one.summary
    assert findings_of(HALF_OPEN, group) == []


def test_an_older_channel_that_goes_in_time_is_a_reconnect() -> None:
    group = snapshot_of(*TWICE, lost("x:1", 200))
    assert findings_of(DUPLICATE, group) == []
    assert severities(HALF_OPEN, group) == ["INFO"]


def test_a_newer_process_that_goes_was_a_duplicate() -> None:
    group = snapshot_of(*TWICE, lost("x:2", 200))
    assert severities(DUPLICATE, group) == ["INFO"]
    assert findings_of(HALF_OPEN, group) == []


def test_the_address_still_listed_states_which_one_went() -> None:
    members = listed_at("a", 300, "x/x:1", "y")
    assert severities(DUPLICATE, snapshot_of(*TWICE, lost("x:1", 200), members=members)) == ["INFO"]


def test_an_older_channel_that_stays_too_long_is_a_duplicate() -> None:
    assert severities(DUPLICATE, snapshot_of(*TWICE, lost("x:1", 400))) == ["INFO"]


def test_two_addresses_at_every_broker() -> None:
    members = [*listed_at("a", 500, "x/1", "x/2", "y"), *listed_at("b", 501, "x/3", "x/4", "y")]
    (one,) = findings_of(DUPLICATE, snapshot_of(topic(), join("x"), join("y"), members=members))
    assert one.evidence["addresses"] == "3, 4"


def borne_out_as(rule: str, group: GroupSnapshot) -> list[str]:
    return [r["severity"] for r in run_rules(group)["findings"] if r["rule_id"] == rule]


@pytest.mark.parametrize(
    ("client_id", "severity"), [("10.0.0.1@app", "ERROR"), ("10.0.x.x@app", "INFO")]
)
def test_processes_whose_ids_differ_where_they_are_masked_may_have_one_each(
    client_id: str, severity: str
) -> None:
    listings = [f"{client_id}/{client_id}:1", f"{client_id}/{client_id}:2"]
    members = [*listed_at("a", 900, *listings)]
    twice = topic(), join(client_id), join(client_id, at=100, channel=f"{client_id}:2")
    for listed in ([], members):
        assert borne_out_as(DUPLICATE, snapshot_of(*twice, members=listed)) == [severity]
    seen_only = snapshot_of(topic(), join(client_id), members=members)
    assert borne_out_as(DUPLICATE, seen_only) == [severity]


def test_the_address_after_a_broker_restart_is_no_second_one() -> None:
    members = [*listed_at("a", 500, "x/1", "y/5"), *listed_at("a", 560, "x/2", "y/6")]
    group = snapshot_of(topic(), join("x"), join("y"), members=members)
    assert [findings_of(rule, group) for rule in (DUPLICATE, MANY)] == [[], []]


def test_a_thawed_broker_lists_everybody_many_times() -> None:
    many = [f"{who}/{n}" for who in "xy" for n in range(5)]
    crowd = [*listed_at("a", 500, *many), *listed_at("b", 501, "x", "y")]
    group = snapshot_of(topic(), join("x"), join("y"), members=crowd)
    assert findings_of(DUPLICATE, group) == []
    (one,) = findings_of(MANY, group)
    assert "a listed 2 members 10 times" in one.summary
    calm = listed_at("a", 800, "x", "y")
    resolved = snapshot_of(topic(), join("x"), join("y"), members=[*crowd, *calm])
    assert severities(MANY, resolved) == ["INFO"]


@pytest.mark.parametrize(
    ("later", "severity"),
    [(("x/1", "y/2"), "INFO"), (("y/2",), "INFO"), (("x/1", "x/3", "y/2"), "WARNING")],
)
def test_the_extra_entries_of_every_member_have_to_go(
    later: tuple[str, ...], severity: str
) -> None:
    many = [f"{who}/{n}" for who in "xy" for n in range(5)]
    observations = [(500, many), (700, many), (900, later)]
    crowd = [row for at, texts in observations for row in listed_at("a", at, *texts)]
    group = snapshot_of(topic(), join("x"), join("y"), members=crowd)
    assert severities(MANY, group) == [severity]


def test_a_log_in_which_everybody_multiplies() -> None:
    again = [join(who, at=100, channel=f"{who}:{n}") for who in "xy" for n in range(3)]
    group = snapshot_of(topic(), join("x"), join("y"), *again)
    assert findings_of(DUPLICATE, group) == []
    assert severities(MANY, group) == ["WARNING"]


def test_broadcasting_duplicates_share_a_local_store() -> None:
    own = [join("x", at=10 + n, channel=f"x:{n}", message_model="BROADCASTING") for n in range(2)]
    assert severities(DUPLICATE, snapshot_of(topic(), *own)) == ["WARNING"]


def test_entries_that_stay_are_a_warning() -> None:
    many = [f"{who}/{n}" for who in "xy" for n in range(5)]
    crowd = [row for at in (300, 700) for row in listed_at("a", at, *many)]
    group = snapshot_of(topic(), join("x"), join("y"), members=crowd)
    assert severities(MANY, group) == ["WARNING"]


def test_connections_of_one_host_with_an_id_of_address_and_process() -> None:
    """Two consumers of one process, of a client that is no Java client."""
    own, other = "10.0.0.5@77", "10.0.0.6@77"
    for client_id, what in ((own, "2 connections have shared"), (other, "2 processes have shared")):
        twice = [join(client_id, channel=f"10.0.0.5:{port}") for port in (1, 2)]
        (one,) = findings_of(DUPLICATE, snapshot_of(topic(), *twice))
        assert one.summary.startswith(what)
        assert ("instance name" in str(one.remedy)) == (client_id == own)


def test_listed_connections_of_one_host() -> None:
    members = listed_at("a", 500, "10.0.0.5@77/10.0.0.5:1", "10.0.0.5@77/10.0.0.5:2")
    (one,) = findings_of(DUPLICATE, snapshot_of(topic(), join("10.0.0.5@77"), members=members))
    assert "instance name" in str(one.remedy)


def test_an_id_that_one_broker_lists_many_times_like_all_others_is_no_duplicate() -> None:
    # of the others the log lacks that they came back
    listed = [*listed_at("a", 400, *"xxyy"), *listed_at("b", 400, "x", "y")]
    for number, row in enumerate(listed):
        row["client_addr"] = f"10.0.0.1:{number}"
    group = snapshot_of(*TWICE, members=listed)
    assert findings_of(DUPLICATE, group) == []
    assert len(findings_of(MANY, group)) == 1


ORPHAN_QUEUES = "ORPHAN_QUEUES"


def test_unowned_queues_by_topic() -> None:
    group = snapshot_of(
        topic("A"),
        topic("B"),
        join("x", "A"),
        join("y", "A", "B"),
        ends=[end(n, 9, name="B") for n in range(4)],
        commits=[commit(0, 4, name="B")],
    )
    (one,) = findings_of(ORPHAN_QUEUES, group)
    assert one.topic == "B"
    assert "2 queues of B (a:0-1)" in one.summary
    assert "14 messages behind" in one.summary
    assert one.evidence["reason"] == "a counted member does not subscribe to the topic"


def test_retry_queues_are_a_warning() -> None:
    duplicate = join("x"), join("x", channel="x:2"), join("y")
    group = snapshot_of(topic(), topic(broker="b"), *duplicate)
    assert sorted(severities(ORPHAN_QUEUES, group)) == ["ERROR", "WARNING"]


def test_retry_queues_that_are_read_again_show_their_end_too() -> None:
    """Without it the next night would call them gone beside their healed topics."""
    duplicate = join("x"), join("x", channel="x:2"), join("y"), leave("x", 700, channel="x:2")
    group = snapshot_of(topic(), topic(broker="b"), *duplicate)
    rows = [r for r in run_rules(group)["findings"] if r["rule_id"] == ORPHAN_QUEUES]
    ends = {row["topic"]: (row["severity"], row["last_ms"], has_ended(row)) for row in rows}
    assert ends == dict.fromkeys(("T", "%RETRY%g"), ("INFO", ms(700), True))


def test_a_change_that_has_not_settled() -> None:
    group = snapshot_of(topic("A"), topic("B"), join("x", "A", "B"), join("y", "A", at=998))
    assert findings_of(ORPHAN_QUEUES, group) == []


def test_an_offline_group_has_no_orphans() -> None:
    assert findings_of(ORPHAN_QUEUES, snapshot_of(topic(), join("x"), leave("x", 100))) == []


def test_a_group_back_after_a_long_time_offline() -> None:
    group = snapshot_of(topic(), join("x"), leave("x", 100), join("x", at=900, channel="n"))
    assert findings_of(ORPHAN_QUEUES, group) == []


def test_long_orphaned_and_read_again() -> None:
    group = snapshot_of(
        topic("A"), topic("B"), join("x", "A"), join("y", "A", "B"), leave("x", 500)
    )
    assert severities(ORPHAN_QUEUES, group) == ["INFO"]


def test_config_and_machine_room_have_their_own_rules() -> None:
    group = snapshot_of(topic(), join("x", strategy="CONFIG(queues=T/a/0)"))
    assert findings_of(ORPHAN_QUEUES, group) == []


def test_lists_that_have_an_id_once_again_end_what_lists_showed() -> None:
    """Seen by lists alone, or logged without the line by which one of the two went."""
    twice, once = listed_at("a", 500, "x/1", "x/2", "y"), listed_at("a", 700, "x/1", "y")
    for happened in ((topic(), join("x"), join("y")), TWICE):
        still = snapshot_of(*happened, members=twice)
        assert severities(DUPLICATE, still) == ["ERROR"]
        ended = snapshot_of(*happened, members=[*twice, *once])
        (one,) = (row for row in run_rules(ended)["findings"] if row["rule_id"] == DUPLICATE)
        assert (one["severity"], one["last_ms"]) == ("INFO", ms(700))
        assert f"ended at {utc(ms(700))}: a lists it once" in one["summary"]


def test_a_list_that_is_newer_than_the_end_in_the_log_shows_that_it_has_not_ended() -> None:
    later = listed_at("a", 500, "x/1", "x/2", "y")
    assert severities(DUPLICATE, snapshot_of(*TWICE, lost("x:1", 400), members=later)) == ["ERROR"]
    before = listed_at("a", 350, "x/1", "x/2", "y")
    assert severities(DUPLICATE, snapshot_of(*TWICE, lost("x:1", 400), members=before)) == ["INFO"]
