from dataclasses import replace

from rebalance_core.ingest.events.listings import listed_tables
from rebalance_core.ingest.evidence import Evidence
from tests.unit.ingest.events.listings.pieces import CONTEXT, listed, said


def of_kind(kind: str, *pieces: Evidence) -> list[Evidence]:
    return [one for one in listed_tables("g", list(pieces), CONTEXT) if one.kind == kind]


def test_each_log_has_its_end() -> None:
    (end,) = of_kind("log_ended")
    assert (end.place, end.at_ms) == ("a", 100_999)


def test_a_dump_after_the_log_is_the_broker_s_whole_table() -> None:
    within = listed(90, "1@1", "x:1")
    after = [listed(300, "1@1", "x:1"), listed(300, "1@1", "x:2"), listed(300, "2@2", "x:3")]
    unlogged = listed(300, "3@3", "x:9", "b")
    (table,) = of_kind("members_listed", within, *after, unlogged)
    channels = {c: [v["channel"] for v in rows] for c, rows in table.values["members"].items()}
    assert (table.place, table.at_ms) == ("a", 300_000)
    assert channels == {"1@1": ["x:1", "x:2"], "2@2": ["x:3"]}


def test_what_a_client_subscribes_counts_when_every_log_has_ended() -> None:
    asked = [
        said(second, "client_subscription", "", client_file="1@1", topic=topic)
        for second in (90, 300)
        for topic in ("T", "%RETRY%g")
    ]
    (own,) = of_kind("topics_listed", *asked)
    assert (own.at_ms, own.values) == (300_000, {"client_id": "1@1", "topics": {"T"}})
    one_goes_on = replace(CONTEXT, logged={"a": 100_000, "b": 800_000})
    kinds = {one.kind for one in listed_tables("g", asked, one_goes_on)}
    assert kinds == {"log_ended"}
