"""Small histories as rows, edits written as in a file, and what comes of them."""

from typing import Any

from rebalance_core.planning.scenario.file import parse_scenario
from rebalance_core.planning.scenario.scenario import Scenario
from tests.recordings.tables import Tables, ledger_of
from tests.unit.planning.scenario.edited_history import edit_history

Row = dict[str, Any]

CLUSTER, GROUP = "c", "g"
END_MS = 1_000_000


def event(at_ms: int, event_type: str, **values: Any) -> Row:
    """One row; `numbered` gives the sequence."""
    return {"cluster": CLUSTER, "event_ms": at_ms, "event_type": event_type} | values


def join(at_ms: int, number: int, **values: Any) -> Row:
    """A member of the group, on a host and a port of its own."""
    own = {"subscriptions": ["T"]} | values
    return event(at_ms, "CONSUMER_JOIN", consumer_group=GROUP, **process(number), **own)


def process(number: int) -> Row:
    """Id and channel of the member of this number."""
    ip = f"10.0.0.{number}"
    return {"client_id": f"{ip}@{700 + number}#{number}000000", "channel_id": f"{ip}:4{number:04}"}


def gone(at_ms: int, number: int, event_type: str = "CONSUMER_LEAVE") -> Row:
    """A member leaves."""
    return event(at_ms, event_type, consumer_group=GROUP, **process(number))


def topic(at_ms: int, queues: int, name: str = "T", broker: str = "a") -> Row:
    """A topic on a broker."""
    nums = {"read_queue_nums": queues, "write_queue_nums": queues}
    return event(at_ms, "TOPIC_CONFIG", topic=name, broker_name=broker, **nums)


def numbered(rows: list[Row]) -> list[Row]:
    """The rows with the order they are written in as their sequence."""
    return [row | {"sequence": i} for i, row in enumerate(rows)]


def dump(members: int = 4, queues: int = 8) -> list[Row]:
    """What one ingested dump gives: OBSERVED events of one instant."""
    rows = [event(END_MS, "BROKER_UP", broker_name=name, version="5.3.3") for name in "ab"]
    rows += [topic(END_MS, queues, broker=name) for name in "ab"]
    rows += [join(END_MS, number + 1) for number in range(members)]
    return numbered([row | {"detail": "OBSERVED"} for row in rows])


def scenario(*edits: str) -> Scenario:
    """A scenario of edits such as ``kind = "lose_broker", broker = "a"``."""
    tables = "\n".join(f"[[edit]]\n{edit.replace('; ', chr(10))}" for edit in edits)
    mistakes: list[str] = []
    read = parse_scenario(f'name = "s"\ndescription = "d"\n{tables}', "s.toml", mistakes)
    assert mistakes == []
    return read


def edited(rows: list[Row], *edits: str, seed: int = 0) -> tuple[list[Row], tuple[str, ...]]:
    """The history under the edits, and the warnings."""
    done = edit_history(scenario(*edits), rows, seed=seed)
    return list(done.rows), done.warnings


def replayed(rows: list[Row]) -> Tables:
    """The ledger of the rows; nothing of them may be rejected."""
    events = [{name: v for name, v in row.items() if v is not None} for row in rows]
    tables = ledger_of({"cluster_events": events, "consumer_groups": [], "queue_offsets": [],
                        "committed_offsets": []})  # fmt: skip
    assert tables["rejected"] == []
    return tables


def types(rows: list[Row], before: list[Row]) -> list[str]:
    """The types of the rows that were not there before."""
    known = {(row["event_ms"], row["sequence"]) for row in before}
    return [row["event_type"] for row in rows if (row["event_ms"], row["sequence"]) not in known]
