"""With names that sort the other way round the files still give what the tables give.

The hosts of clients and the brokers of each recording get names in the reverse of RocketMQ's
order: who owns what changes, and so does every row of the ledger. But nothing that ingest tells
may hang on a name's place in an order, so the ledger of the renamed files is that of the renamed
tables.

One thing files cannot tell, whatever the names: changes of a topic at two brokers inside one
second, which is all that their logs have (rocketmq.md §10.1). So the tables' are dated alike.
"""

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.model.events import TOPIC_EVENTS
from rebalance_core.model.queue import sort_client_ids
from tests.recordings.rewritten import files_of, written
from tests.recordings.tables import RECORDINGS, Tables, derived_tables, ledger_of

NAMED_BY_ROOMS = "strategies"
"""Its rooms are parts of names."""
REVERSED = [name for name in RECORDINGS if name != NAMED_BY_ROOMS]
MOVES, OF_OTHERS = 1_900, 1_300
"""Moves compared at least, and how many of them have another client than was recorded."""

Moves = dict[tuple[str, str, str, int], list[tuple[str, str]]]


class Reversal:
    """Text with the hosts of clients and the brokers renamed, each set in reverse order."""

    def __init__(self, tables: Tables) -> None:
        events = tables["cluster_events"]
        hosts = {e["client_id"].partition("@")[0] + "@" for e in events if "client_id" in e}
        brokers = {e["broker_name"] for e in events if "broker_name" in e}
        self.names = _reversed([host.removesuffix("@") for host in sort_client_ids(hosts)])
        self.names |= _reversed(sorted(brokers))
        self._pattern = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, self.names))})(?!\w)")

    def __call__(self, text: str) -> str:
        return self._pattern.sub(lambda found: self.names[found[0]], text)


def _reversed(names: list[str]) -> dict[str, str]:
    """As long as before, as tables of mqadmin have columns."""
    return {name: chr(ord("z") - place) + name[1:] for place, name in enumerate(names)}


def dated_as_logged(tables: Tables) -> Tables:
    """The tables with each event of a topic in the middle of its second."""
    events = [
        event | {"event_ms": event["event_ms"] // 1000 * 1000 + 500}
        if event["event_type"] in TOPIC_EVENTS
        else event
        for event in tables["cluster_events"]
    ]
    events.sort(key=lambda event: (event["event_ms"], event["sequence"]))
    return tables | {"cluster_events": events}


def moves(tables: Tables) -> Moves:
    """Who gave up or took each queue of a group, in order, transient epochs included."""
    found: Moves = defaultdict(list)
    diffs = ledger_of(tables)["diffs"]
    for row in sorted(diffs, key=lambda row: (row["epoch"], row["client_id"], row["action"])):
        queue = row["consumer_group"], row["topic"], row["broker_name"], row["queue_id"]
        found[queue].append((row["client_id"], row["action"]))
    return found


@pytest.mark.parametrize("name", REVERSED)
def test_files_give_what_the_tables_give(name: str, tmp_path: Path) -> None:
    tables = derived_tables(name)
    renamed = Reversal(tables)
    files = {renamed(n): renamed(text.decode()).encode() for n, text in files_of(name).items()}
    done = ingest_collection(written(files, tmp_path))
    assert done.tables["rejected"] == []
    expected = moves(dated_as_logged(json.loads(renamed(json.dumps(tables)))))
    groups = {queue[0] for queue in expected}
    found = moves(done.tables)
    assert {queue: found[queue] for queue in found if queue[0] in groups} == expected


def test_the_order_decides_who_owns_what() -> None:
    total = of_others = 0
    for name in REVERSED:
        tables = derived_tables(name)
        renamed = Reversal(tables)
        before = moves(json.loads(renamed(json.dumps(tables))))
        for queue, own in json.loads(renamed(json.dumps(list(moves(tables).items())))):
            total += len(own)
            of_others += before[tuple(queue)] != list(map(tuple, own)) and len(own)
    print(f"{of_others} of {total} moves are of queues that go to others")
    assert total >= MOVES
    assert of_others >= OF_OTHERS
