"""Suspensions of members by their own logs."""

from dataclasses import replace

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.events.suspensions import suspension_events
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
