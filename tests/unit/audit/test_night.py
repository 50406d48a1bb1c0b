"""Where a night begins, and what of a finding that ended before it."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.completeness import LOG_GAP_MS, unsure_findings
from rebalance_core.audit.coverage import CollectedLog, Coverage, LogSpan
from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.audit.night import (
    NIGHT_MS,
    EarlierNight,
    NightBegin,
    has_ended,
    logged_ms,
    stated_ends,
    within_night,
)
from rebalance_core.audit.unknowns import broker_log
from rebalance_core.engine.group_history import begun_epochs
from rebalance_core.model.errors import InputRefused, UsageError

END = 10 * NIGHT_MS


def begun(end_ms: int = END, **given: Any) -> tuple[int, int]:
    run = NightBegin(**given).of_runs({"c": AuditRun(0, end_ms)})["c"]
    return run.night_ms, run.over_ms


def before(night_ms: int, end_ms: int, logged: int | None = None, cluster: str = "c") -> Any:
    night = EarlierNight(night_ms, end_ms, end_ms if logged is None else logged)
    return {"place": "runs/latest", "previous": {cluster: night}}


def test_it_begins_where_the_previous_run_ended() -> None:
    assert begun() == (END - NIGHT_MS, END - NIGHT_MS)
    assert begun(**before(1, END - 700)) == (END - 700, END - 700)
    assert begun(since_ms=5, **before(1, END - 700)) == (5, 5)
    # what ended once the logs of that night had been copied is in none of them
    assert begun(**before(1, END - 700, END - 900)) == (END - 700, END - 900)


@pytest.mark.parametrize("earlier_by", [0, 50])
def test_the_same_night_once_more(earlier_by: int) -> None:
    assert begun(END - earlier_by, **before(END - 700, END)) == (END - 700, END - 700)


def test_a_cluster_that_the_previous_run_lacks_has_a_night_of_its_own() -> None:
    runs = {"c": AuditRun(0, END), "d": AuditRun(0, END)}
    nights = NightBegin(**before(1, END - 700)).of_runs(runs)
    assert (nights["c"].night_ms, nights["d"].night_ms) == (END - 700, END - NIGHT_MS)


def test_nights_that_cannot_be() -> None:
    with pytest.raises(UsageError, match=r"--since .* is not before the end of the collection"):
        begun(since_ms=END)
    with pytest.raises(InputRefused, match=r"its night of c began at .* after the end of this"):
        begun(END - 700, **before(END - 700, END))
    with pytest.raises(InputRefused, match="contains an audit of other, but this run audits c"):
        begun(**before(1, END - 700, cluster="other"))
    assert NightBegin(**before(1, 2, cluster="other")).of_runs({}) == {}


def test_the_first_epoch_and_those_until_its_start_are_not_of_the_night() -> None:
    epochs: Any = [{"epoch": number, "from_ms": 100 * number} for number in range(4)]
    assert begun_epochs(epochs, 200) == {3}
    assert begun_epochs(epochs, -1) == {1, 2, 3}


@pytest.mark.parametrize(
    ("ends_ms", "down", "until"),
    [
        (END - 60_000, False, END - 60_000),
        (END - LOG_GAP_MS - 1, False, END),  # it is silent, or missed as incomplete
        (END - 60_000, True, END),
    ],
)
def test_until_when_the_logs_go(ends_ms: int, down: bool, until: int) -> None:
    log = CollectedLog(broker_log("a"), (LogSpan(0, ends_ms, from_start=True, steady=True),), down)
    run = AuditRun(0, END, coverage=Coverage({"a": log}, known=True))
    assert logged_ms(run) == until
    assert logged_ms(AuditRun(0, END)) == END


def finding(last_ms: int | None, severity: str = "ERROR", **evidence: str) -> Any:
    return {
        "rule_id": "OFFSET_ROLLBACK",
        "severity": severity,
        "consumer_group": "g",
        "last_ms": last_ms,
        **dict.fromkeys(("first_ms", "topic", "broker_name", "queue_id", "client_id")),
        "summary": "It fell.",
        "evidence": {"by": "7", **evidence},
        "remedy": "Look.",
        "accepted": None,
    }


RUN = AuditRun(0, END, night_ms=END - 700, over_ms=END - 900)


@pytest.mark.parametrize("last_ms", [None, END - 900, END - 800, END])
def test_what_holds_or_ended_since_is_as_it_was(last_ms: int | None) -> None:
    assert within_night(finding(last_ms), RUN) == finding(last_ms)
    assert within_night(finding(0), None) == finding(0)


def test_what_ended_before_is_for_information() -> None:
    over = within_night(finding(END - 901), RUN)
    assert (over["severity"], has_ended(over)) == ("INFO", True)
    assert over["summary"] == (
        "It fell; it ended at 1970-01-10 23:59:59Z, before this night began (1970-01-10 23:59:59Z)."
    )
    assert over["remedy"] == "Nothing now. If it recurs: Look."
    hint = finding(0, "INFO")
    assert within_night(hint, RUN) == hint
    assert not has_ended(hint)


def test_what_ended_then_as_the_earlier_run_stated_is_over() -> None:
    stated = stated_ends([finding(END - 850), finding(END - 800)], END - 900, END - 700)
    run = replace(RUN, stated=stated)
    for last_ms in (END - 900, END - 850, END - 800):
        assert has_ended(within_night(finding(last_ms), run))
    others: list[Any] = [
        finding(END - 799),  # it went on
        finding(END - 800) | {"severity": "WARNING"},
        finding(END - 800) | {"first_ms": 7},
        finding(END - 800) | {"client_id": "another"},
        finding(None),
    ]
    for other in others:
        assert within_night(other, run) == other


@pytest.mark.parametrize(
    ("last_ms", "severity"),
    [(None, "ERROR"), (END - 901, "ERROR"), (END - 700, "ERROR"), (END - 800, "INFO")],
)
def test_what_an_earlier_run_did_not_see_end(last_ms: int | None, severity: str) -> None:
    assert stated_ends([finding(last_ms, severity)], END - 900, END - 700) == {}


def test_the_stated_ends_are_those_of_the_next_night() -> None:
    given = before(1, END - 700, END - 900)
    given["previous"]["c"] = replace(given["previous"]["c"], stated={("a",): 5})
    runs = {"c": AuditRun(0, END), "d": AuditRun(0, END)}
    nights = NightBegin(**given).of_runs(runs)
    assert (nights["c"].stated, nights["d"].stated) == ({("a",): 5}, {})
    assert NightBegin(**given, since_ms=5).of_runs(runs)["c"].stated == {}


def test_what_was_not_sure_and_is_over_makes_no_collection_incomplete() -> None:
    unsure = finding(0, "INFO", not_covered="LOG_ENDED", why="its log had ended")
    assert [*unsure_findings([unsure])] != []
    assert [*unsure_findings([within_night(unsure, RUN)])] == []
