"""The latencies read from truth files against the CSV files that the recorder made of `timing`."""

import csv
from collections import defaultdict
from functools import cache

from tests.recordings.tables import DATA, Row, rows
from tests.recordings.timings.actions import Action, observed_actions
from tests.recordings.timings.client_logs import marks_of
from tests.recordings.timings.handovers import hand_overs
from tests.recordings.truth import read_truth

TIMING = DATA / "timing"


@cache
def actions() -> list[Action]:
    events = rows(TIMING / "tables" / "cluster_events.jsonl")
    return observed_actions(read_truth("timing"), marks_of("timing"), events)


def table(name: str) -> list[Row]:
    with (TIMING / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def number(text: str) -> int | None:
    return int(text) if text else None


def test_every_latency() -> None:
    found = set()
    for event in table("events"):
        begin, until = int(event["begin_ms"]), int(event["window_end_ms"])
        event_ms = int(event["event_ms"])
        times: dict[tuple[str, str], list[int]] = defaultdict(list)
        for one in actions():
            if (
                one.group == event["group"]
                and begin <= one.at_ms < until
                and one.pass_ms is not None
            ):
                times[one.client, "pass"].append(one.pass_ms)
                times[one.client, "add" if one.added else "drop"].append(one.at_ms)
        for (client, kind), at_ms in times.items():
            found.add((event_ms, event["event_kind"], client, kind, min(at_ms) - event_ms))
    expected = {
        (
            int(row["event_ms"]),
            row["event_kind"],
            row["client"],
            row["kind"],
            int(row["latency_ms"]),
        )
        for row in table("timing")
    }
    assert found == expected
    assert len(expected) == 430


def test_every_hand_over() -> None:
    by_queue = defaultdict(list)
    for one in actions():
        by_queue[one.group, one.queue].append(one)
    found = set()
    for event in table("events"):
        begin, until = int(event["begin_ms"]), int(event["window_end_ms"])
        event_ms = int(event["event_ms"])
        for (group, queue), its_actions in by_queue.items():
            if group == event["group"]:
                for each in hand_overs(its_actions, begin, until):
                    drop = None if each.drop_ms is None else each.drop_ms - event_ms
                    add = None if each.add_ms is None else each.add_ms - event_ms
                    found.add(
                        (
                            event_ms,
                            event["event_kind"],
                            *queue,
                            each.from_client or "",
                            each.to_client or "",
                            drop,
                            add,
                            each.gap_ms,
                        )
                    )
    expected = {
        (
            int(row["event_ms"]),
            row["event_kind"],
            row["topic"],
            row["broker"],
            int(row["queue_id"]),
            row["from_client"],
            row["to_client"],
            number(row["drop_ms"]),
            number(row["add_ms"]),
            number(row["gap_ms"]),
        )
        for row in table("handover")
    }
    assert found == expected
    assert len(expected) == 325
