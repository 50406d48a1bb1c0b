"""`make live`: four nights of a real cluster by `rebalance night`, with faults planted and mended.

Each night is held to what it must say: the rules above INFO of each group and of the cluster, and
nothing else. In the end the ledger is held to what the clients themselves owned when each night
ended. Takes a quarter of an hour on an idle machine with a JDK and Maven.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from rebalance_core.model.queue import is_retry_topic
from tests.live.cluster import ACL, BROKERS, Cluster, credentials, prepare

INFO = "INFO"
SETTLED_SECONDS = 45
"""After a change members have their queues for two heartbeats."""
LOST_SECONDS = 170
"""A killed member is expired after 120 s, in a look each 10 s."""
ROUTE_SECONDS = 65
"""Clients own a dead broker's queues until they ask for routes (30 s) and divide anew (20 s)."""
TOLD_MS = 2_000
"""Owners are compared so long before a night's collection began."""
Said = Mapping[str, set[str]]
Owners = Counter[tuple[str, str, int, str]]
"""The processes that own a queue, by topic, broker, queue and client id."""


@dataclass(frozen=True)
class Expected:
    """What a night must say.

    Attributes:
        exit_codes: with which it may end.
        rules: by group, the rules above INFO; of the cluster with the key "".
        healed: rules that the history calls healed, with their group.
        may: what it may say besides, as it depends on when members happened to read.
    """

    exit_codes: Sequence[int]
    rules: Said
    healed: set[tuple[str, str]] = field(default_factory=set)
    may: Said = field(default_factory=dict)


UNEVEN = {"DOUBLE_OWNER", "ORPHAN_QUEUES"}
"""What follows where members do not divide by one list and one strategy."""
PLANTED: Said = {
    "g-dup": {"DUPLICATE_CLIENT_ID"} | UNEVEN,
    "g-sub": {"INCONSISTENT_SUBSCRIPTION", "ORPHAN_QUEUES", "REBALANCE_STORM"},
    "g-mixed": {"MIXED_STRATEGIES"} | UNEVEN,
    "g-idle": {"IDLE_MEMBER"},
    "g-gone": {"OFFLINE_WITH_LAG"},
    "g-tags": {"INCONSISTENT_TAGS"},
    "g-off": {"GROUP_DISABLED"},
    "g-paused": {"MEMBER_SUSPENDED"},
}
FRESH: Said = {
    "g-dup": {"DUPLICATE_CLIENT_ID", "DOUBLE_OWNER"},
    "g-mixed": {"MIXED_STRATEGIES", "DOUBLE_OWNER"},
}
"""With a broker down the members divide the other's queues anew; which have no owner depends on
the ids, and after so short a time that is for information."""
STUCK: Said = {
    "g-sub": {"COMMIT_STANDS_STILL", "NEVER_COMMITTED"},
    "g-off": {"COMMIT_STANDS_STILL"},
    "g-paused": {"COMMIT_STANDS_STILL"},
}
"""What follows from their faults once the commits are minutes old, or where pulls were refused from
the first on.
"""
TOPICS = {"Order": 4, "Stock": 4, "Pay": 4, "Small": 1, "Left": 4}
MEMBERS: Mapping[str, Sequence[Mapping[str, object]]] = {
    "fine-1": [{"group": "g-fine", "ip": "10.0.0.1", "topics": "Order"}],
    "fine-2": [{"group": "g-fine", "ip": "10.0.0.2", "topics": "Order"}],
    "many-1": [
        {"group": "g-circle", "ip": "10.0.0.3", "topics": "Stock", "strategy": "AVG_BY_CIRCLE"},
        {"group": "g-orderly", "ip": "10.0.0.3", "topics": "Pay", "orderly": "true"},
        {"group": "g-broadcast", "ip": "10.0.0.3", "topics": "Stock", "mode": "BROADCASTING"},
    ],
    "many-2": [
        {"group": "g-circle", "ip": "10.0.0.4", "topics": "Stock", "strategy": "AVG_BY_CIRCLE"},
        {"group": "g-orderly", "ip": "10.0.0.4", "topics": "Pay", "orderly": "true"},
    ],
    "faults-1": [
        {"group": "g-dup", "ip": "10.0.0.5", "topics": "Order", "instance": "same"},
        {"group": "g-sub", "ip": "10.0.0.5", "topics": "Order"},
        {"group": "g-mixed", "ip": "10.0.0.5", "topics": "Order"},
        {"group": "g-idle", "ip": "10.0.0.5", "topics": "Small"},
        {"group": "g-gone", "ip": "10.0.0.5", "topics": "Left"},
        {"group": "g-tags", "ip": "10.0.0.5", "topics": "Order:A"},
        {"group": "g-off", "ip": "10.0.0.5", "topics": "Order"},
        {"group": "g-paused", "ip": "10.0.0.5", "topics": "Order"},
    ],
    "faults-2": [
        {"group": "g-dup", "ip": "10.0.0.5", "topics": "Order", "instance": "same"},
        {"group": "g-sub", "ip": "10.0.0.6", "topics": "Stock"},
        {"group": "g-mixed", "ip": "10.0.0.6", "topics": "Order", "strategy": "AVG_BY_CIRCLE"},
        {"group": "g-idle", "ip": "10.0.0.6", "topics": "Small"},
        {"group": "g-tags", "ip": "10.0.0.6", "topics": "Order:B"},
    ],
    "faults-3": [{"group": "g-idle", "ip": "10.0.0.7", "topics": "Small"}],
}
GROUPS = sorted({str(member["group"]) for of in MEMBERS.values() for member in of})
MAY_BE_OFFLINE = ("g-gone",)
MENDED: Sequence[Mapping[str, object]] = [
    {"group": "g-dup", "ip": "10.0.0.6", "topics": "Order", "instance": "other"},
    {"group": "g-sub", "ip": "10.0.0.6", "topics": "Order"},
    {"group": "g-mixed", "ip": "10.0.0.6", "topics": "Order"},
    {"group": "g-idle", "ip": "10.0.0.6", "topics": "Small"},
    {"group": "g-tags", "ip": "10.0.0.6", "topics": "Order:A"},
]
NIGHTS = (
    # one copy of the stores does not show whether a queue was ever committed
    Expected((0, 3), PLANTED, may={**STUCK, "": {"COLLECTION_INCOMPLETE"}}),
    Expected(
        (3,),
        {**PLANTED, **FRESH, "": {"BROKER_DOWN", "COLLECTION_INCOMPLETE"}},
        may={**STUCK, **{group: {"ORPHAN_QUEUES"} for group in FRESH}},
    ),
    Expected(
        (0, 3),
        {
            "": {"BROKER_DOWN"},  # the night began while it was down
            "g-idle": {"IDLE_MEMBER"},
            "g-gone": {"OFFLINE_WITH_LAG"},
        },
        {
            ("DUPLICATE_CLIENT_ID", "g-dup"),
            ("INCONSISTENT_SUBSCRIPTION", "g-sub"),
            ("MIXED_STRATEGIES", "g-mixed"),
            ("INCONSISTENT_TAGS", "g-tags"),
            ("GROUP_DISABLED", "g-off"),
            ("MEMBER_SUSPENDED", "g-paused"),
        },
    ),
    Expected((0, 3), {"g-idle": {"IDLE_MEMBER"}}, {("OFFLINE_WITH_LAG", "g-gone")}),
)


class Nights:
    """The nights of a cluster, and what was wrong with them.

    Args:
        cluster: that runs.
        work: a folder for them.
        lab: RocketMQ's jars, which the collector needs.
    """

    def __init__(self, cluster: Cluster, work: Path, lab: Path) -> None:
        self._cluster = cluster
        self._work = work
        self._lab = lab
        self.ends_ms: list[int] = []
        self.wrong: list[str] = []

    @property
    def runs(self) -> Path:
        """The folder of `rebalance night --runs`."""
        return self._work / "runs"

    def last(self) -> Path:
        """Return the output of the last audit."""
        return sorted((self.runs / "nights").iterdir())[-1] / "audit"

    def night(self, clients: Sequence[str], expected: Expected) -> None:
        """Run a night, and hold it to what it must say."""
        number = len(self.ends_ms) + 1
        sources = self._work / "sources.txt"
        sources.write_text(self._cluster.sources(clients))
        words = ["night", "--sources", str(sources), "--runs", str(self.runs), "--json"]
        words += ["--name-server", self._cluster.name_server, "--admin-time-zone", "UTC"]
        self.ends_ms.append(int(time.time() * 1000) - TOLD_MS)
        done = subprocess.run(
            [sys.executable, "-m", "rebalance_core.cli.main", *words],
            env=os.environ
            | {
                "ROCKETMQ_HOME": str(self._lab),
                "ROCKETMQ_CREDENTIALS": str(credentials(self._lab)),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        print(f"night {number}: exit {done.returncode}", flush=True)
        if done.returncode not in expected.exit_codes:
            self.wrong.append(f"night {number}: exit {done.returncode}: {done.stderr[-2000:]}")
            return
        said = _said(self.last())
        for group in sorted({*said, *expected.rules}):
            must, says = expected.rules.get(group, set()), said.get(group, set())
            print(f"  {group or 'the cluster'}: {', '.join(sorted(says)) or 'nothing'}")
            if not must <= says <= must | expected.may.get(group, set()):
                self.wrong.append(
                    f"night {number}, {group or 'the cluster'}: it says {sorted(says)}, and must "
                    f"say {sorted(must)}"
                )
        healed = _healed(self.runs / "history")
        if missing := expected.healed - healed:
            self.wrong.append(f"night {number}: not healed: {sorted(missing)}")

    def hold_owners(self) -> None:
        """Hold the last ledger to what the clients owned when each night ended."""
        for number, at_ms in enumerate(self.ends_ms, 1):
            for group in GROUPS:
                ledger = _ledger_owners(self.last(), group, at_ms)
                truth = _true_owners(self._cluster.run, group, at_ms)
                print(f"owners of {group} in night {number}: {len(truth)} queues")
                if ledger != truth or not (truth or group in MAY_BE_OFFLINE):
                    self.wrong.append(
                        f"owners of {group} in night {number}: ledger {ledger}, clients {truth}"
                    )


def _said(audit: Path) -> dict[str, set[str]]:
    said: dict[str, set[str]] = {}
    for row in pq.read_table(audit / "findings").to_pylist():
        if row["severity"] != INFO and row["accepted"] is None:
            said.setdefault(row["consumer_group"] or "", set()).add(row["rule_id"])
    return said


def _healed(history: Path) -> set[tuple[str, str]]:
    rows = pq.read_table(history / "open_findings").to_pylist()
    return {(row["rule_id"], row["consumer_group"]) for row in rows if row["state"] == "HEALED"}


def _ledger_owners(audit: Path, group: str, at_ms: int) -> Owners:
    rows = pq.read_table(audit / "ownership")
    rows = rows.filter(pc.equal(rows["consumer_group"], group))
    owners = Owners()
    for row in rows.to_pylist():
        begun = row["from_ms"] <= at_ms and (row["to_ms"] is None or at_ms < row["to_ms"])
        if begun and row["client_id"] is not None and not is_retry_topic(row["topic"]):
            queue = row["topic"], row["broker_name"], row["queue_id"]
            owners[*queue, row["client_id"]] += row["holders"]
    return owners


def _true_owners(run: Path, group: str, at_ms: int) -> Owners:
    """Return what the clients of a group wrote last about each of their topics."""
    owners = Owners()
    for file in run.glob("app-*/truth.jsonl"):
        client_id, owned = "", dict[str, list[tuple[str, int]]]()
        for line in file.read_text().splitlines():
            row = json.loads(line)
            if row["t"] > at_ms or row.get("group") != group:
                continue
            if row["kind"] == "started":
                client_id = row["client_id"]
            elif row["kind"] == "owned":
                owned[row["topic"]] = [tuple(queue) for queue in row["queues"]]
            elif row["kind"] == "shutdown_end":
                owned = {}
        if (file.parent / "killed").exists() and int((file.parent / "killed").read_text()) <= at_ms:
            continue
        for topic, queues in owned.items():
            if not is_retry_topic(topic):
                owners.update((topic, *queue, client_id) for queue in queues)
    return owners


def live(lab: Path, work: Path) -> list[str]:
    """Play the four nights; return what was wrong.

    Args:
        lab: RocketMQ's jars, fetched if they are not there.
        work: an empty folder.
    """
    prepare(lab)
    with Cluster(lab, work / "run") as cluster:
        cluster.start()
        for topic, queues in TOPICS.items():
            cluster.topic(topic, queues)
        for group in GROUPS:
            cluster.group(group)
        for name, members in MEMBERS.items():
            cluster.client(name, members)
        time.sleep(SETTLED_SECONDS)
        for topic in TOPICS:
            cluster.send(topic, 20)
        time.sleep(SETTLED_SECONDS)
        nights = Nights(cluster, work, lab)
        clients = list(MEMBERS)

        cluster.tell("faults-1", "shutdown g-gone")
        cluster.tell("faults-1", "suspend g-paused")
        cluster.group("g-off", enabled=False)
        time.sleep(SETTLED_SECONDS)
        cluster.send("Left", 50)
        cluster.send("Order", 20)
        # brokers notify members of g-sub at each heartbeat: a storm needs several
        time.sleep(SETTLED_SECONDS)
        nights.night(clients, NIGHTS[0])

        _kill(cluster, "fine-2")
        cluster.client("fine-3", [{"group": "g-fine", "ip": "10.0.0.8", "topics": "Order"}])
        clients.append("fine-3")
        time.sleep(LOST_SECONDS)
        cluster.kill("broker-b")
        time.sleep(ROUTE_SECONDS)
        nights.night(clients, NIGHTS[1])

        cluster.start_broker("broker-b")
        cluster.stop_client("faults-2")
        cluster.tell("faults-1", "resume g-paused")
        cluster.group("g-off")
        time.sleep(SETTLED_SECONDS)
        cluster.client("mended", MENDED)
        clients.append("mended")
        time.sleep(LOST_SECONDS)
        nights.night(clients, NIGHTS[2])

        cluster.topic("Order", 6)
        for broker in BROKERS:
            cluster.kill(broker)
            cluster.start_broker(broker, *ACL)
        time.sleep(SETTLED_SECONDS)
        cluster.client("back", [{"group": "g-gone", "ip": "10.0.0.9", "topics": "Left"}])
        clients.append("back")
        time.sleep(2 * SETTLED_SECONDS)
        nights.night(clients, NIGHTS[3])
        nights.hold_owners()
    return nights.wrong


def _kill(cluster: Cluster, name: str) -> None:
    cluster.kill_client(name)
    (cluster.run / f"app-{name}/killed").write_text(str(int(time.time() * 1000)))


def main() -> int:
    """Run the lane; 1 if a night did not say what it must."""
    parser = argparse.ArgumentParser(prog="python -m tests.live", description=__doc__)
    parser.add_argument(
        "--lab",
        type=Path,
        default=Path(".lab"),
        help="folder of RocketMQ's jars, made if it is not there; default: %(default)s",
    )
    parser.add_argument(
        "--work", type=Path, help="new folder for the cluster and its nights; default: temporary"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = options.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        wrong = live(options.lab.absolute(), work.absolute())
    print("\n".join(wrong) or f"{len(NIGHTS)} nights said what they must", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
