"""Input tables from what the recorder did, and from when its clients said that they had started.

Brokers' processes come and go; what that is for their brokers follows from who else runs then.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.recordings.tables import DATA, Row, Tables

PUSH: Row = {"subscriptions": ("OrderTopic",), "client_version": "5.5.0", "broker_version": "5.5.0"}
REPLICATED = ("slave", "slave-read")
"""Recordings with masters and slaves, of two groups."""
REPLICATED_GROUPS = {"order-service": PUSH, "ledger": PUSH | {"ordered": True}}
_PUSH_533: Row = {"client_version": "5.3.3", "broker_version": "5.3.3"}
SHARED = "shared-later"
"""Recording of two groups in the same client instances."""
SHARED_GROUPS = {
    "orders-app": _PUSH_533 | {"subscriptions": ("Orders",)},
    "clicks-app": _PUSH_533 | {"subscriptions": ("Clicks",)},
}


def tables_of(name: str, groups: dict[str, Row]) -> Tables:
    """Input tables from what the recorder did, and when its clients said that they had started.

    Args:
        name: of the recording.
        groups: columns of each group's row of consumer_groups.
    """
    events = [json.loads(line) for line in (DATA / name / "events.jsonl").read_text().splitlines()]
    cluster = json.loads((DATA / name / "cluster.json").read_text())
    clients = list(_of_clients(name, events, groups))
    found = [*_of_brokers(cluster["brokers"], events), *_of_recorder(events), *clients]
    found += _of_suspensions(events, _client_ids(name))
    found.sort(key=lambda row: row["event_ms"])
    common = {"cluster": "DefaultCluster"}
    return {
        "cluster_events": [common | {"sequence": i} | row for i, row in enumerate(found)],
        "consumer_groups": [common | {"consumer_group": g} | row for g, row in groups.items()],
        "queue_offsets": [],
        "committed_offsets": [],
    }


@dataclass
class _Broker:
    """The processes of one broker that run."""

    mode: str
    master: bool = False
    slaves: set[str] = field(default_factory=set)

    def turn(self, process: str, is_slave: bool, runs: bool) -> list[tuple[str, str | None]]:
        """(event_type, detail) of one process that starts or ends."""
        master, lived = self.master, self.master or bool(self.slaves)
        if is_slave:
            (self.slaves.add if runs else self.slaves.discard)(process)
        else:
            self.master = runs
        lives = self.master or bool(self.slaves)
        if not lives:
            return [("BROKER_DOWN", None)] if lived else []
        found: list[tuple[str, str | None]] = [] if lived else [("BROKER_UP", None)]
        if self.master and lived and not master:
            found.append(("MASTER_UP", None))
        elif not self.master and (master or not lived):
            found.append(("MASTER_DOWN", self.mode))
        return found


_RUNS = {"broker_started": True, "broker_restarted": True,
         "broker_killed": False, "broker_stopped": False}  # fmt: skip


def _of_brokers(processes: list[Row], events: list[Row]) -> Iterator[Row]:
    settings = {one["name"]: one["settings"] for one in processes}
    ids = {one["name"]: one["broker_id"] for one in processes}
    brokers: dict[str, _Broker] = {}
    for event in events:
        if event["event"] in _RUNS:
            process = event["broker"]
            name = settings[process].get("brokerName", process)
            read = settings[process].get("slaveReadEnable") == "true"
            broker = brokers.setdefault(name, _Broker("SLAVE_READ" if read else "REFUSED"))
            for kind, detail in broker.turn(process, ids[process] != 0, _RUNS[event["event"]]):
                yield {
                    "event_ms": event["t"],
                    "event_type": kind,
                    "broker_name": name,
                    "detail": detail,
                }


def _client_ids(name: str) -> dict[tuple[str, str], list[tuple[int, str]]]:
    """Ids by (client, group), with when they started."""
    ids = defaultdict(list)
    for path in sorted((DATA / name / "truth").glob("*.jsonl")):
        for line in map(json.loads, path.read_text().splitlines()):
            if line["kind"] == "started":
                ids[path.stem, line["group"]].append((line["t"], line["client_id"]))
    return ids


def _of_suspensions(
    events: list[Row], ids: dict[tuple[str, str], list[tuple[int, str]]]
) -> Iterator[Row]:
    for event in events:
        if event["event"] in ("suspend", "resume"):
            for group in event["args"]:
                at_ms = event["t"]
                known = [one for since, one in ids[event["client"], group] if since <= at_ms]
                row = _of_member(f"CONSUMER_{event['event'].upper()}", at_ms, group, known[-1])
                yield row | {"channel_id": event["client"]}


def _of_recorder(events: list[Row]) -> Iterator[Row]:
    for event in events:
        match event["event"]:
            case "topic_created" | "topic_updated":
                for broker in event.get("brokers") or [event["broker"]]:
                    yield {
                        "event_ms": event.get("done_t", event["t"]),
                        "event_type": "TOPIC_CONFIG",
                        "topic": event["topic"],
                        "broker_name": broker,
                        "read_queue_nums": event["read"],
                        "write_queue_nums": event["write"],
                        "perm": event["perm"],
                    }
            case "request_mode_set":
                share = event["pop_share_queue_num"]
                pop = event["mode"] == "POP"
                yield {
                    "event_ms": event["done_t"],
                    "event_type": "REQUEST_MODE",
                    "topic": event["topic"],
                    "consumer_group": event["group"],
                    "detail": f"POP(share_queue_num={share})" if pop else "PULL",
                }


def _of_clients(name: str, events: list[Row], groups: dict[str, Row]) -> Iterator[Row]:
    killed, left = defaultdict(list), defaultdict(list)
    for event in events:
        if event["event"] == "client_killed":
            killed[event["client"]].append(event["t"])
        elif event["event"] == "client_shutdown":
            left[event["client"]].append(event["t"])
    for path in sorted((DATA / name / "truth").glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        if not any(line["kind"] == "shutdown_end" for line in lines):
            groups_of = {line["group"] for line in lines}
            lines += [
                {"t": at_ms, "kind": "shutdown_end", "group": group}
                for at_ms in left[path.stem]
                for group in groups_of
            ]
        for row in _of_client(lines, killed[path.stem]):
            if row["consumer_group"] in groups:
                yield row | {"channel_id": path.stem}


def _of_client(lines: list[Row], killed: list[int]) -> Iterator[Row]:
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
