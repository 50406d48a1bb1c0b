"""The judge finds what it is there for, on findings made up for a recording."""

from typing import Any

import pytest

from tests.degraded import judge
from tests.degraded.files import Files
from tests.degraded.judge import OTHERWISE, Audited, queues_named
from tests.degraded.trials import JUDGES, Trial, table
from tests.recordings.tables import Row

NAME = "pathologies"


def audited(exit_code: int = 3, **changed: list[Row]) -> Audited:
    """The audit of the whole recording with other tables."""
    return Audited(exit_code, judge.whole(NAME).tables | changed)


def failures(said: Audited) -> list[str]:
    """Kinds of failure that the judge sees in it."""
    files = Files.of(NAME)
    return [kind for kind, judged in JUDGES.items() if any(judged(files, said))]


def rows(table: str, **change: Any) -> list[Row]:
    return [row | change for row in judge.whole(NAME).tables[table]]


def verdict(group: str, **change: Any) -> Audited:
    every = judge.whole(NAME).tables["group_verdicts"]
    changed = [row | change if row["consumer_group"] == group else row for row in every]
    return audited(group_verdicts=changed)


def test_the_whole_recording_fails_in_nothing() -> None:
    assert failures(audited()) == []
    true, loud = judge.loudness(Files.of(NAME), audited())
    assert true == loud > 0


def test_a_run_that_is_sure_of_nothing_is_blind() -> None:
    unsure = audited(0, findings=rows("findings", severity="INFO"))
    assert failures(unsure) == ["blind green"]
    (with_exit_0, not_sure) = judge.blind(Files.of(NAME), unsure)
    assert "MIXED_STRATEGIES p-mixed" in with_exit_0
    assert "MIXED_STRATEGIES p-mixed" in not_sure
    assert judge.loudness(Files.of(NAME), unsure)[1] == 0


def test_members_that_wrote_what_they_held_are_compared_where_others_did_not() -> None:
    name, group, at_ms = "go-java", "g-mix", 1795644650555
    real = judge.really_held(name, group, at_ms)
    assert real == {
        "192.0.2.10@13923#1848382883540": {("MixTopic", "broker-a", n) for n in range(4)},
        "192.0.2.1@14158#1871319506154": {("MixTopic", "broker-b", n) for n in range(4)},
    }
    (java, others) = sorted(real)
    equal: Row = {"consumer_group": group, "verdict": "EQUAL", "dumped_ms": at_ms}

    def false(held: judge.Held) -> bool:
        open_since: Row = {"consumer_group": group, "from_ms": 0, "to_ms": None}
        rows = [
            open_since | {"client_id": c, "topic": t, "broker_name": b, "queue_id": q}
            for c, queues in held.items()
            for t, b, q in queues
        ]
        said = Audited(0, {"group_verdicts": [equal], "ownership": rows})
        return any(judge.falsely_equal(Files.of(name), said))

    assert not false(real)
    assert not false(real | {"go": {("MixTopic", "broker-a", 9)}})
    assert false(real | {java: real[others]})


def test_what_a_collection_incomplete_names_survives() -> None:
    lacks = {
        "rule_id": judge.INCOMPLETE,
        "severity": "ERROR",
        "consumer_group": None,
        "evidence": [("groups", "p-dup, p-mixed")],
    }
    said = audited(findings=[*rows("findings", severity="INFO"), lacks])
    named = [group for group, *_ in judge.true_findings(NAME) if group in ("p-dup", "p-mixed")]
    assert judge.loudness(Files.of(NAME), said)[1] == len(named) > 0
    assert failures(said) == []


@pytest.mark.parametrize(
    ("changed", "kind"), [("OFFLINE", "false OFFLINE"), ("DIFFERS", "false DIFFERS")]
)
def test_a_false_verdict_is_a_failure(changed: str, kind: str) -> None:
    assert failures(verdict("p-idle", verdict=changed)) == [kind]


def test_equal_to_another_ledger_than_the_clients_is_a_failure() -> None:
    other = [row | {"queue_id": 7 - row["queue_id"]} for row in rows("ownership")]
    assert "false EQUAL" in failures(audited(ownership=other))


def test_an_hour_off_is_a_move_and_a_start_outside_of_its_window() -> None:

    def later(row: Row) -> Row:
        times = (name for name in row if name.endswith("_ms") and row[name])
        return row | {name: row[name] + 3_600_000 for name in times}

    diffs, epochs = ([*map(later, rows(table))] for table in ("diffs", "epochs"))
    assert failures(audited(diffs=diffs, epochs=epochs)) == ["move outside"]
    unknown = rows("group_verdicts", verdict="UNKNOWN")
    said = audited(diffs=diffs, epochs=epochs, group_verdicts=unknown)
    assert failures(said) == ["move unsure"]
    wrong = [
        row | {"start_offset_low": 10**9, "start_offset_high": None} for row in rows("pull_starts")
    ]
    assert failures(audited(pull_starts=wrong)) == ["start outside"]


def test_moves_that_the_audit_denies_are_no_statement() -> None:
    """Someone named another strategy: by its moves members hold what DIFFERS says they do not."""

    def later(row: Row) -> Row:
        times = (name for name in row if name.endswith("_ms") and row[name])
        return row | {name: row[name] + 3_600_000 for name in times}

    diffs, epochs = ([*map(later, rows(table))] for table in ("diffs", "epochs"))
    differing = rows("group_verdicts", verdict="DIFFERS")
    said = audited(diffs=diffs, epochs=epochs, group_verdicts=differing)
    assert failures(said) == ["false DIFFERS"]


def test_the_times_of_a_group_are_by_one_of_the_clocks_that_may_be_right() -> None:
    files = Files.of(NAME)
    files.clocks.append(frozenset({3_600_000}))

    def later(row: Row, late_ms: tuple[int, ...]) -> Row:
        times = (name for name in row if name.endswith("_ms") and row[name])
        return row | {name: row[name] + late_ms[row["epoch"] % len(late_ms)] for name in times}

    def outside(*late_ms: int) -> list[str]:
        diffs, epochs = (
            [later(row, late_ms) for row in rows(table)] for table in ("diffs", "epochs")
        )
        return [*judge.moves_outside(files, audited(diffs=diffs, epochs=epochs))]

    assert outside(0) == outside(3_600_000) == []
    assert len(outside(-3_600_000)) > len(outside(0, 3_600_000)) > 0


def test_a_group_of_no_file_is_invented() -> None:
    stranger = rows("group_verdicts", consumer_group="p-dup (1)", verdict="UNKNOWN")[0]
    assert failures(audited(group_verdicts=[*rows("group_verdicts"), stranger])) == ["invented"]
    files = Files.of(NAME)
    files.strangers.add("p-dup (1)")
    assert not any(judge.invented(files, audited(group_verdicts=[stranger])))


def test_a_healthy_group_deserves_no_warning() -> None:
    false = rows("findings")[0] | {
        "rule_id": "IDLE_MEMBER",
        "severity": "WARNING",
        "consumer_group": "p-unsub",
    }
    said = audited(findings=[*rows("findings"), false])
    assert [*judge.undeserved(Files.of(NAME), said)] == [
        ("other rule", "WARNING IDLE_MEMBER p-unsub")
    ]


def test_the_report_has_a_row_for_kinds_that_did_not_run() -> None:
    told = table([Trial(1, NAME, ("tabs",), judged=4, unknown=1, true=3, loud=2)]).splitlines()
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ") for line in told}
    assert cells["tabs"][-4:] == ["4", "25%", "0 of 0", "67% of 3"]
    assert cells["csv"][1:3] == ["0", "0"]


def test_a_finding_of_another_rule_counts_only_where_it_states_as_much() -> None:
    def row(rule: str, first_ms: int | None = None, client: str = "x", **evidence: str) -> Row:
        told = {"rule_id": rule, "first_ms": first_ms, "client_id": client}
        return told | {"evidence": [*evidence.items()]}

    rare, differing = OTHERWISE["RARE_HEARTBEATS"], OTHERWISE["INCONSISTENT_SUBSCRIPTION"]
    expired = row("EXPIRED_WHILE_ALIVE", interval_ms="200000")
    assert rare("", expired, row("RARE_HEARTBEATS", interval_ms="200000"))
    assert not rare("", expired, row("RARE_HEARTBEATS", interval_ms="130000"))
    assert not rare("", expired, row("RARE_HEARTBEATS", client="y", interval_ms="200000"))
    unsubscribed = row("UNSUBSCRIBED_SHARE", 9)
    assert differing("", unsubscribed, row("INCONSISTENT_SUBSCRIPTION"))
    assert not differing("", unsubscribed, row("INCONSISTENT_SUBSCRIPTION", 5))
    deleted = {"consumer_group": "notify-push-old"}
    leftover = row("LEFTOVER_OFFSETS", topics="%RETRY%notify-push-old, notify-push")
    for behind, true in (("notify-push 836", True), ("notify-push 1673", False), ("U 8", False)):
        lag = row("OFFLINE_WITH_LAG", behind=behind) | deleted
        assert OTHERWISE["OFFLINE_WITH_LAG"]("06-deleted-group", leftover, lag) is true
    stale = row("OWNERSHIP_DIFFERS_STALE_VIEW") | {"topic": "T"}
    for topic, true in (("T", True), ("U", False)):
        unexplained = row("OWNERSHIP_DIFFERS_UNEXPLAINED") | {"topic": topic}
        assert OTHERWISE["OWNERSHIP_DIFFERS_UNEXPLAINED"]("", stale, unexplained) is true
    assert [*queues_named("a:0,2-3, b:1")] == [("a", 0), ("a", 2), ("a", 3), ("b", 1)]
