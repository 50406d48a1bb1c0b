"""What was not acknowledged: it comes late, not at all, or again and again."""

from typing import Any

import pytest

from tests.unit.audit.snapshots import (
    Row,
    commit,
    fact,
    findings_of,
    found_in_cluster,
    join,
    leave,
    ms,
    of_client_log,
    severities,
    snapshot_of,
    topic,
)

BEHIND, STUCK, REPEATS = "REVIVE_BEHIND", "REVIVE_STUCK", "REVIVE_REPEATS"


def passes(
    late_s: int, at: float, until: float, queue: int = 0, *, stands: bool = False, broker: str = "a"
) -> Row:
    fields: Any = {"revive_queue": queue, "late_s": late_s, "stands": stands}
    return fact("REVIVE_PASS", at, until, broker_name=broker, **fields)


def trouble(reason: str, at: float, until: float, **own: Any) -> Row:
    return fact("REVIVE_TROUBLE", at, until, broker_name="a", reason=reason, **own)


def progress(offset: int, end: int, at: float, queue: int = 0) -> Row:
    fields: Any = {"revive_queue": queue, "offset": offset, "end": end}
    return fact("REVIVE_PROGRESS", at, broker_name="a", **fields)


def test_checkpoints_that_were_due_long_ago() -> None:
    late = [passes(60, 100, 160), passes(300, 200, 400), passes(30, 90, 95, queue=3)]
    (one,) = found_in_cluster(BEHIND, late)
    assert (one.broker_name, one.first_ms, one.last_ms) == ("a", ms(90), None)
    assert one.evidence["revive_queues"] == "0, 3"
    assert "at least 5 min after their invisible time" in one.summary


def test_late_passes_are_over_once_each_queue_was_on_time() -> None:
    late = [passes(60, 100, 160), passes(60, 100, 170, queue=1)]
    one_is = [*late, passes(0, 20, 400)]
    assert [found.last_ms for found in found_in_cluster(BEHIND, one_is)] == [None]
    both = [*one_is, passes(10, 200, 300, queue=1)]
    assert [found.last_ms for found in found_in_cluster(BEHIND, both)] == [ms(170)]


def scraped(late_ms: int, at: float, queue: int = 0) -> Row:
    fields: Any = {"revive_queue": queue, "late_ms": late_ms, "waiting": 3}
    return fact("REVIVE_METRICS", at, broker_name="a", **fields)


def test_the_newest_metrics_show_it_where_the_log_has_no_passes() -> None:
    late = [scraped(5_000, 100), scraped(45_000, 400), scraped(2_000, 400, queue=1)]
    (one,) = found_in_cluster(BEHIND, late)
    assert (one.broker_name, one.first_ms, one.evidence["revive_queues"]) == ("a", ms(400), "0")
    assert "again 45 s after their invisible time" in one.summary
    assert found_in_cluster(BEHIND, [*late, scraped(4_000, 500)]) == []
    assert found_in_cluster(BEHIND, [*late, passes(0, 10, 900)]) == []
    assert found_in_cluster(BEHIND, [scraped(29_999, 400)]) == []


@pytest.mark.parametrize("late_s", [0, 10])
def test_passes_within_seconds_are_healthy(late_s: int) -> None:
    assert found_in_cluster(BEHIND, [passes(late_s, 0, 900)]) == []
    assert found_in_cluster(STUCK, [passes(late_s, 0, 900)]) == []


def test_a_queue_whose_passes_end_where_they_began_stands_still() -> None:
    still = [passes(60, 100, 160, stands=True), passes(120, 161, 300, stands=True)]
    (one,) = found_in_cluster(STUCK, still)
    assert (one.first_ms, one.last_ms) == (ms(161), None)
    assert found_in_cluster(BEHIND, still) == []
    short = [passes(60, 100, 130, stands=True)]
    assert (found_in_cluster(STUCK, short), len(found_in_cluster(BEHIND, short))) == ([], 1)
    moved = [*still, passes(120, 301, 310)]
    assert (found_in_cluster(STUCK, moved), len(found_in_cluster(BEHIND, moved))) == ([], 1)


def test_a_service_that_is_switched_off_or_fails() -> None:
    read = passes(0, 10, 50)
    for reason, words in (("SWITCHED_OFF", "timerWheelEnable"), ("FAILED", "exception")):
        (one,) = found_in_cluster(STUCK, [read, trouble(reason, 100, 130)])
        assert words in one.summary
        assert (one.broker_name, one.first_ms, one.last_ms) == ("a", ms(100), None)
        over = [read, trouble(reason, 100, 130), passes(60, 140, 140, queue=5)]
        (one,) = found_in_cluster(STUCK, over)
        assert one.last_ms == ms(140)
        assert found_in_cluster(STUCK, [read, trouble(reason, 100, 120)]) == []


@pytest.mark.parametrize(("until", "known"), [(990, True), (930, False)])
def test_a_service_whose_log_ends_early_may_have_gone_on(until: float, *, known: bool) -> None:
    rows = [passes(0, 10, 50), trouble("FAILED", 100, until)]
    (one,) = found_in_cluster(STUCK, rows, end=1_000)
    assert one.last_ms is None
    assert one.severity == (None if known else "INFO")
    later = [*rows, trouble("TOO_SLOW", 800, 990)]
    assert {one.severity for one in found_in_cluster(STUCK, later, end=1_000)} == {None}
    (lost,) = found_in_cluster(STUCK, [trouble("GIVEN_UP", 100, until)], end=1_000)
    assert lost.severity is None


def test_a_broker_that_refuses_pops_has_nothing_to_deliver_again() -> None:
    off = trouble("SWITCHED_OFF", 100, 900)
    assert found_in_cluster(STUCK, [off]) == []
    assert found_in_cluster(STUCK, [off, passes(0, 10, 50, broker="b")]) == []
    assert found_in_cluster(STUCK, [off, progress(0, 0, 50)]) == []
    assert len(found_in_cluster(STUCK, [off, progress(0, 1, 50)])) == 1


def test_one_queue_that_fails_is_not_mended_by_the_others() -> None:
    failed = trouble("FAILED", 100, 900, revive_queue=2)
    others = [failed, passes(0, 10, 950, queue=1)]
    assert [one.last_ms for one in found_in_cluster(STUCK, others)] == [None]
    itself = [*others, passes(0, 10, 960, queue=2)]
    assert [one.last_ms for one in found_in_cluster(STUCK, itself)] == [ms(960)]


def test_what_was_given_up_does_not_come_later() -> None:
    given_up = trouble("GIVEN_UP", 100, 100, topic="T")
    (one,) = found_in_cluster(STUCK, [given_up, passes(0, 10, 900)])
    assert one.last_ms is None
    assert "(topics T)" in one.summary


@pytest.mark.parametrize("reason", ["MESSAGE_GONE", "MESSAGE_NOT_READ"])
def test_a_message_that_is_gone_is_no_trouble_of_the_service(reason: str) -> None:
    assert found_in_cluster(STUCK, [trouble(reason, 100, 900), passes(0, 10, 950)]) == []


def test_dumps_that_show_one_offset_long_after_something_new_came() -> None:
    stands = [progress(7, 9, 100), progress(7, 20, 160), progress(7, 20, 220)]
    (one,) = found_in_cluster(STUCK, stands)
    assert (one.first_ms, one.evidence["reason"]) == (ms(160), "STANDS")
    explained = [*stands, passes(0, 10, 50), trouble("SWITCHED_OFF", 100, 220)]
    assert [f.evidence["reason"] for f in found_in_cluster(STUCK, explained)] == ["SWITCHED_OFF"]
    began = [progress(6, 9, 10), *stands]
    assert [found.first_ms for found in found_in_cluster(STUCK, began)] == [ms(160)]


@pytest.mark.parametrize(
    "dumps",
    [
        [progress(7, 9, 100), progress(7, 9, 900)],  # acknowledgements behind the last checkpoint
        [progress(7, 9, 100), progress(7, 20, 900)],  # what is new may have come just now
        [progress(7, 9, 100), progress(7, 20, 160), progress(7, 30, 219)],
        [progress(7, 9, 100), progress(7, 20, 160), progress(20, 22, 220)],
        [progress(7, 9, 100, queue=1), progress(7, 20, 160, queue=2), progress(7, 20, 220, 2)],
    ],
)
def test_dumps_of_queues_that_may_be_read(dumps: list[Row]) -> None:
    assert found_in_cluster(STUCK, dumps) == []


def retries(*offsets: tuple[float, int], read: int = 10, name: str = "%RETRY%g_T") -> Any:
    return {"commits": [commit(0, read), *(commit(0, o, at, name) for at, o in offsets)]}


@pytest.mark.parametrize("name", ["%RETRY%g_T", "%RETRY%g+T"])
def test_messages_that_come_again_and_again(name: str) -> None:
    again = retries((100, 12), (900, 40), name=name)
    of_another = fact("POP_TIMED_OUT", 100, 400, 200, topic="T2", invisible_ms=20_000, log="app-1")
    group = snapshot_of(topic(), join("x"), facts=[of_client_log(of_another)], **again)
    (one,) = findings_of(REPEATS, group)
    assert severities(REPEATS, group) == ["WARNING"]
    assert severities(REPEATS, snapshot_of(topic(), join("x"), **again)) == ["INFO"]  # no log
    assert (one.topic, one.evidence["retries"], one.evidence["retries_lately"]) == ("T", "40", "28")
    assert str(one.evidence["reason"]).startswith("not in these files")


def test_the_invisible_time_is_named_as_the_cause_where_a_client_logs_it() -> None:
    expired = fact("POP_TIMED_OUT", 100, 400, 200, topic="T", invisible_ms=20_000, log="app-1")
    group = snapshot_of(topic(), join("x"), facts=[expired], **retries((900, 40)))
    (one,) = findings_of(REPEATS, group)
    assert one.evidence["reason"] == "the invisible time ends before consumption does"
    assert severities(REPEATS, group) == ["INFO"]


@pytest.mark.parametrize(
    "commits",
    [
        retries((900, 29)),
        retries((900, 19), read=2),
        retries((100, 40), (900, 40)),
        retries((900, 40), name="%RETRY%g"),
        retries((900, 40), name="%RETRY%other_T"),
        retries((100, 40), (170, 40)),
        {"commits": [commit(0, 40, name="%RETRY%g_T")]},
        {"commits": [commit(0, 10)]},
    ],
)
def test_retries_that_are_few_over_or_of_others(commits: Any) -> None:
    assert findings_of(REPEATS, snapshot_of(topic(), join("x"), **commits)) == []


def counted(at: float, broker: str = "b", **counts: int | str) -> Row:
    """Return a broker's counts of a group whose 6 messages came 60 more times."""
    usual = {"acknowledgements": 0, "put_back": 66, "given": 6, "given_again": 60, "in_flight": 6}
    details: Any = {"checkpoints": 40, "failed": 0, **usual, **counts}
    return fact("POP_COUNTS", at, topic="T", broker_name=broker, **details)


def test_metrics_show_that_nothing_is_acknowledged() -> None:
    group = snapshot_of(topic(), join("x"), facts=[counted(900)], **retries((900, 40)))
    (one,) = findings_of(REPEATS, group)
    assert (one.evidence["retries"], one.evidence["acknowledgements"]) == ("40", "0")
    assert one.summary.endswith(
        "40 retries; b counted 0 acknowledgements from its start to 2026-11-18 11:21:40Z."
    )


def test_metrics_without_commits_count_what_comes_again() -> None:
    rows = [counted(100, given_again=9), counted(900), counted(900, "c", acknowledgements=2)]
    (one,) = findings_of(REPEATS, snapshot_of(topic(), join("x"), facts=rows))
    assert [one.evidence[name] for name in ("retries", "retries_lately")] == ["120", "51"]
    assert one.evidence["read_at_most"] == "26"
    assert str(one.evidence["reason"]).startswith("not in these files")
    assert (
        "; b, c counted 2 acknowledgements, renewals included, from their start to " in one.summary
    )


def test_copies_of_several_brokers_compare_no_broker_with_itself() -> None:
    """A copy of each broker, taken one after the other, does not show that it is over."""
    metrics: Any = {"facts": [counted(780), counted(900, "c")]}
    commits: Any = retries((780, 40))
    commits["commits"] += [commit(0, 40, 900, "%RETRY%g_T", broker="b")]
    for known in (metrics, commits):
        (one,) = findings_of(REPEATS, snapshot_of(topic(), join("x"), **known))
        assert "retries_lately" not in one.evidence
        assert "of them from" not in one.summary


def test_a_broker_with_one_copy_may_have_gone_on() -> None:
    rows = [counted(100), counted(900), counted(900, "c")]
    (one,) = findings_of(REPEATS, snapshot_of(topic(), join("x"), facts=rows))
    assert "of them from" not in one.summary
    rows[0] = counted(100, given_again=9)
    (one,) = findings_of(REPEATS, snapshot_of(topic(), join("x"), facts=rows))
    assert "120 retries, at least 51 of them from 2026-11-18 11:08:20Z to 2026-" in one.summary
    rows += [counted(100, "c", given_again=59)]
    (one,) = findings_of(REPEATS, snapshot_of(topic(), join("x"), facts=rows))
    assert "120 retries, 52 of them from " in one.summary


def test_a_broker_without_retries_needs_no_second_copy() -> None:
    rows = [counted(100), counted(900), counted(900, "c", given_again=0, put_back=0, in_flight=0)]
    assert findings_of(REPEATS, snapshot_of(topic(), join("x"), facts=rows)) == []


def test_metrics_that_lack_an_earlier_count_are_no_copy() -> None:
    rows = [counted(100, given_again=""), counted(700, given_again=9), counted(900)]
    (one,) = findings_of(REPEATS, snapshot_of(topic(), join("x"), facts=rows))
    assert one.evidence["retries_lately"] == "51"
    assert " from 2026-11-18 11:18:20Z to " in one.summary


@pytest.mark.parametrize(
    "rows",
    [
        [counted(900, given=0, acknowledgements=60)],  # each came once since the broker started
        [counted(900, given_again=19)],
        [counted(900, in_flight="")],
        [counted(900), counted(900, "c", given="")],
        [counted(100), counted(900)],  # it is over
    ],
)
def test_metrics_that_do_not_show_repeats(rows: list[Row]) -> None:
    assert findings_of(REPEATS, snapshot_of(topic(), join("x"), facts=rows)) == []


def test_a_broker_that_started_again_counts_from_nothing() -> None:
    rows = [counted(100, given_again=90), counted(900)]
    (one,) = findings_of(REPEATS, snapshot_of(topic(), join("x"), facts=rows))
    assert one.evidence["retries_lately"] == "60"


def test_a_group_that_went_repeats_no_more() -> None:
    group = snapshot_of(topic(), join("x"), leave("x", 950), **retries((900, 40)))
    assert [one.last_ms for one in findings_of(REPEATS, group)] == [ms(950)]
    assert severities(REPEATS, group) == ["INFO"]
