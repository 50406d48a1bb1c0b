"""Suspensions of members by their own logs."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.events.suspensions import assumed_awake, suspension_events
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.rows import Event

CONTEXT = ClusterContext("c", 0, 900_000)


def line(kind: str, second: float) -> Evidence:
    values = {"group": "g", "client_id": "x", "instance": "1"}
    return Evidence(GROUP, "g", kind, int(second * 1000), "c1", 1, f"c1:{second}", values)


def events(*pieces: Evidence, client_id: str = "x") -> list[tuple[int, str]]:
    joined: Event = {
        "client_id": client_id,
        "event_ms": 0,
        "sequence": 0,
        "channel_id": "x:1",
        "event_type": "CONSUMER_JOIN",
        "source": "b:1",
    }
    pieces = (line("heartbeat", 1), *pieces) if client_id == "x" else pieces
    names = ProcessNames(pieces, CONTEXT)
    rows = suspension_events("g", pieces, names, Presence([joined]), CONTEXT)
    return [(row["event_ms"] // 1000, row["event_type"]) for row in rows]


def test_who_no_longer_puts_pulls_off_while_its_log_goes_on_has_resumed() -> None:
    pulls = [line("paused", second) for second in range(110, 160)]
    suspended = (100, "CONSUMER_SUSPEND")
    assert events(line("suspended", 100), *pulls) == [suspended]
    assert events(line("suspended", 100), *pulls, line("committed", 180)) == [suspended]
    went_on = events(line("suspended", 100), *pulls, line("committed", 195))
    assert went_on == [suspended, (160, "CONSUMER_RESUME")]
    shown = events(line("suspended", 100), *pulls, line("resumed", 160), line("committed", 195))
    assert shown == [suspended, (160, "CONSUMER_RESUME")]


def test_a_pull_that_is_put_off_names_the_process_whose_lines_do_not() -> None:
    def of_pid(piece: Evidence) -> Evidence:
        values = {"group": "g", "instance": "7#12", "pid": "7"}
        return replace(piece, values=values)

    times = (("suspended", 100), ("paused", 101), ("resumed", 103))
    suspended, paused, resumed = (of_pid(line(*at)) for at in times)
    expected = [(100, "CONSUMER_SUSPEND"), (103, "CONSUMER_RESUME")]
    assert events(suspended, paused, resumed, client_id="10.0.0.1@7#12") == expected
    other = replace(resumed, values={**resumed.values, "pid": "8"})
    assert events(suspended, paused, other, client_id="10.0.0.1@7#12") == expected[:1]


def test_a_log_without_the_pulls_that_are_put_off_shows_nothing_of_their_end() -> None:
    assert events(line("suspended", 100), line("committed", 500)) == [(100, "CONSUMER_SUSPEND")]


Spans: TypeAlias = Sequence[tuple[int, int | None]]
"""From when to when a client was a member, s."""
HOUR_S = 3_600
DAY = ClusterContext("c", 0, 24 * HOUR_S * 1000, client_logs=True, client_ends={"c1": 10**8})


def assumed(
    members: Mapping[str, Spans],
    context: ClusterContext,
    *pieces: Evidence,
) -> list[str]:
    """Return the clients that the finding names.

    Args:
        members: by client id, from when to when it was a member, s.
        context: the cluster.
        pieces: lines of clients' logs.
    """
    events: list[Event] = []
    for client_id, spans in members.items():
        for number, span in enumerate(spans):
            moments = zip(("CONSUMER_JOIN", "CONSUMER_LEAVE"), span, strict=True)
            events += [
                {
                    "client_id": client_id,
                    "event_ms": second * 1000,
                    "sequence": 0,
                    "channel_id": f"{client_id}:{number}",
                    "event_type": kind,
                    "source": "b:1",
                }
                for kind, second in moments
                if second is not None
            ]
    names, presence = ProcessNames(pieces, context), Presence(events)
    found = assumed_awake("g", names, presence, context, {"proxied"}, {"orders"})
    assert len(found) <= 1
    return [name for row in found for name in dict(row["evidence"])["clients"].split(", ")]


STAYS: Spans = [(0, None)]


def test_without_a_change_there_is_nothing_that_a_suspended_member_could_leave_undone() -> None:
    assert not assumed({"x": STAYS, "y": [(10, None)], "proxied": STAYS}, DAY)
    assert assumed({"x": STAYS, "y": [(90, None)], "proxied": STAYS}, DAY) == ["x"]
    assert assumed({"x": STAYS, "y": [(0, 90)], "proxied": STAYS}, DAY) == ["x"]
    assert not assumed({"x": STAYS, "y": [(90, None)]}, replace(DAY, client_logs=False))


def test_queues_that_come_or_go_are_a_change() -> None:
    expanded = replace(DAY, topic_turns={"orders": (90_000,)})
    assert assumed({"x": STAYS}, expanded) == ["x"]
    assert assumed({"x": STAYS}, replace(DAY, broker_turns=(90_000,))) == ["x"]
    assert not assumed({"x": STAYS}, replace(DAY, topic_turns={"others": (90_000,)}))
    assert not assumed({"x": [(0, 80)]}, expanded)
    assert not assumed({"x": [(80, None)]}, expanded)  # it runs its first pass anyway
    assert not assumed({"x": STAYS}, expanded, line("heartbeat", 1))


def test_a_log_shows_what_its_client_does_from_the_line_that_names_it_to_its_end() -> None:
    joined = {"x": STAYS, "y": [(5 * HOUR_S, None)]}
    named = line("heartbeat", 1)
    for end_s, clients in ((4, ["x"]), (6, [])):
        context = replace(DAY, client_ends={"c1": end_s * HOUR_S * 1000})
        assert assumed(joined, context, named) == clients
    assert assumed(joined, DAY, line("heartbeat", 6 * HOUR_S)) == ["x"]
    turns = {"x": STAYS, "y": [(HOUR_S, 5 * HOUR_S)]}
    ended = replace(DAY, client_ends={"c1": 2 * HOUR_S * 1000})
    assert assumed(turns, ended, named) == ["x"]


SECONDS = 5
"""Four memberships of each of 4,000 members take a tenth of one; every change for every membership
takes 16 times the 1.9 of 1,000 members."""


def test_many_members_cost_as_much_each_as_few() -> None:
    members: dict[str, Spans] = {
        f"x{n}": [(at * HOUR_S + n % 1000, at * HOUR_S + n % 1000 + 1800) for at in range(4)]
        for n in range(4_000)
    }
    lines = [
        Evidence(GROUP, "g", "heartbeat", 0, "c1", n, f"c1:{n}", {"group": "g", "client_id": name})
        for n, name in enumerate(members)
    ]
    started = time.process_time()
    assert not assumed(members, DAY, *lines)
    assert time.process_time() - started < SECONDS
