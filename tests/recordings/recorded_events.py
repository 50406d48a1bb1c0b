"""Input tables from what the recorder did, and from when its clients said that they had started."""

import json
from collections import defaultdict
from collections.abc import Iterator

from tests.recordings.tables import DATA, Row, Tables


def tables_of(name: str, groups: dict[str, Row]) -> Tables:
    """Input tables from what the recorder did, and when its clients said that they had started.

    Args:
        name: of the recording.
        groups: columns of each group's row of consumer_groups.
    """
    events = [json.loads(line) for line in (DATA / name / "events.jsonl").read_text().splitlines()]
    found = [*_of_recorder(events), *_of_clients(name, events, groups)]
    found.sort(key=lambda row: row["event_ms"])
    common = {"cluster": "DefaultCluster"}
    return {
        "cluster_events": [common | {"sequence": i} | row for i, row in enumerate(found)],
        "consumer_groups": [common | {"consumer_group": g} | row for g, row in groups.items()],
        "queue_offsets": [],
        "committed_offsets": [],
    }


def _of_recorder(events: list[Row]) -> Iterator[Row]:
    for event in events:
        match event["event"]:
            case "broker_started":
                yield {"event_ms": event["t"], "event_type": "BROKER_UP",
                       "broker_name": event["broker"]}  # fmt: skip
            case "topic_created" | "topic_updated":
                for broker in event.get("brokers") or [event["broker"]]:
                    yield {"event_ms": event.get("done_t", event["t"]),
                           "event_type": "TOPIC_CONFIG", "topic": event["topic"],
                           "broker_name": broker, "read_queue_nums": event["read"],
                           "write_queue_nums": event["write"], "perm": event["perm"]}  # fmt: skip
            case "request_mode_set":
                share = event["pop_share_queue_num"]
                pop = event["mode"] == "POP"
                yield {"event_ms": event["done_t"], "event_type": "REQUEST_MODE",
                       "topic": event["topic"], "consumer_group": event["group"],
                       "detail": f"POP(share_queue_num={share})" if pop else "PULL"}  # fmt: skip


def _of_clients(name: str, events: list[Row], groups: dict[str, Row]) -> Iterator[Row]:
    killed = defaultdict(list)
    for event in events:
        if event["event"] == "client_killed":
            killed[event["client"]].append(event["t"])
    for path in sorted((DATA / name / "truth").glob("*.jsonl")):
        for row in _of_client(map(json.loads, path.read_text().splitlines()), killed[path.stem]):
            if row["consumer_group"] in groups:
                yield row


def _of_client(lines: Iterator[Row], killed: list[int]) -> Iterator[Row]:
    alive: dict[str, str] = {}
    dead = iter([*killed, 1 << 60])
    death = next(dead)
    for line in sorted(lines, key=lambda line: line["t"]):
        if line["t"] > death:
            yield from (_of_member("CONSUMER_LOST", death, g, i) for g, i in alive.items())
            alive, death = {}, next(dead)
        if line["kind"] == "started":
            alive[line["group"]] = line["client_id"]
            yield _of_member("CONSUMER_JOIN", line["t"], line["group"], line["client_id"])
        if line["kind"] == "shutdown_end" and line["group"] in alive:
            yield _of_member("CONSUMER_LEAVE", line["t"], line["group"], alive.pop(line["group"]))
    if death < 1 << 60:
        yield from (_of_member("CONSUMER_LOST", death, g, i) for g, i in alive.items())


def _of_member(event_type: str, at_ms: int, group: str, client_id: str) -> Row:
    return {"event_ms": at_ms, "event_type": event_type, "consumer_group": group,
            "client_id": client_id}  # fmt: skip
