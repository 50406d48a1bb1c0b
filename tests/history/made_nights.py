"""Made nights for history: one recording a day later each night, with planted changes.

Each night is an audit of the tables of `nightly`. Findings of two groups are mended in some nights,
a broker is missing in others, a group flaps, another is deployed at the same hour.
"""

import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rebalance_core.cli.main import main
from rebalance_core.model.times import DAY_MS, HOUR_MS, MINUTE_MS
from tests.tree import TREE

COLLECTION = TREE / "tests" / "recordings/data/nightly/collection"
MISSING_BROKER = "broker-c"
TOGGLED = {"LEFTOVER_OFFSETS": "report-old", "OFFLINE_WITH_LAG": "batch-loader"}
"""Rule -> the group whose finding is there in some nights."""
RECORDED, MADE = "DefaultCluster", "MadeCluster"
"""The cluster of the recording, and one of events alone."""
FLAPPING, DEPLOYED, QUIET = "flapping-group", "deployed-group", "quiet-group"
FLAPPING_HOST = "10.9.9.9"
TOPIC = "orders"
DEPLOY_HOUR = 2
_MOMENT = re.compile(r"\b17952\d{8}\b")
_DAY_START_MS = 1795232778000 // DAY_MS * DAY_MS
"""Of the day of the recording."""


@dataclass
class Planted:
    """What is in one night.

    Attributes:
        complete: no broker is missing.
        there: rules of `TOGGLED` whose finding is there.
        flaps: `FLAPPING` flaps.
        deployed: `DEPLOYED` is deployed.
        made: `MADE` is there; its groups have no dumps, so an audit of it is incomplete.
    """

    complete: bool = True
    there: set[str] = field(default_factory=set)
    flaps: bool = False
    deployed: bool = False
    made: bool = True


def plan_nights(nights: int, seed: int) -> list[Planted]:
    """Draw what is in each night; the first one is whole and has everything."""
    draw = random.Random(seed)
    plans = [Planted(True, set(TOGGLED), True, True)]
    for _ in range(nights - 1):
        there = {rule for rule in TOGGLED if draw.random() < 0.6}
        deployed = draw.random() < 0.8
        plans.append(Planted(draw.random() < 0.7, there, draw.random() < 0.4, deployed))
    return plans


def make_nights(folder: Path, plans: list[Planted], seed: int) -> list[Path]:
    """Audit each night into a folder of its own; names say nothing of their order."""
    bases = {whole: _ingested(folder / f"base-{whole}", whole=whole) for whole in (True, False)}
    draw, outputs = random.Random(seed + 1), []
    for day, plan in enumerate(plans):
        tables = _tables(bases[plan.complete], day, plan, draw)
        given = folder / f"tables-{day}"
        for name, rows in tables.items():
            (given / name).mkdir(parents=True)
            pq.write_table(rows, given / name / "part.parquet")
        output = folder / "runs" / f"{draw.randrange(10**9):09d}"
        code = main("audit", ["--input", str(given), "--output", str(output)])
        assert code in (0, 3), code
        given.rename(output / "given")
        outputs.append(output)
    return outputs


def _ingested(folder: Path, *, whole: bool) -> Path:
    collection = folder / "collection"
    shutil.copytree(COLLECTION, collection)
    if not whole:
        shutil.rmtree(collection / "brokers" / MISSING_BROKER)
    output = folder / "tables"
    assert main("ingest", ["--collection", str(collection), "--output", str(output)]) == 0
    return output


def _tables(base: Path, day: int, plan: Planted, draw: random.Random) -> dict[str, pa.Table]:
    found = {path.name: pq.read_table(path) for path in base.iterdir() if path.is_dir()}
    for rule, group in TOGGLED.items():
        if rule not in plan.there:
            for name in ("committed_offsets", "observed_facts"):
                found[name] = _without(found[name], group)
    if not plan.made:
        return {name: _later(rows, day * DAY_MS) for name, rows in found.items()}
    events = found["cluster_events"]
    found["cluster_events"] = pa.concat_tables([events, _planted_events(events, plan, draw)])
    settings = found["consumer_groups"].to_pylist()
    made = [
        settings[0] | {"cluster": MADE, "consumer_group": name, "subscriptions": [TOPIC]}
        for name in (FLAPPING, DEPLOYED, QUIET)
    ]
    added = pa.Table.from_pylist(made, found["consumer_groups"].schema)
    found["consumer_groups"] = pa.concat_tables([found["consumer_groups"], added])
    return {name: _later(rows, day * DAY_MS) for name, rows in found.items()}


def _without(rows: pa.Table, group: str) -> pa.Table:
    """The rows without the group's offsets; that it is not online stays known."""
    mine = pc.fill_null(pc.equal(rows["consumer_group"], group), False)
    if "kind" in rows.column_names:
        mine = pc.and_(mine, pc.equal(rows["kind"], "QUEUE_PROGRESS"))
    return rows.filter(pc.invert(mine))


def _later(rows: pa.Table, by_ms: int) -> pa.Table:
    times = [name for name in rows.column_names if name.endswith(("_ms",)) and "offset" not in name]
    for name in times:
        at = rows.column_names.index(name)
        rows = rows.set_column(at, name, pc.add(rows[name], by_ms))
    if "details" in rows.column_names:
        details = [
            [(key, _moved(value, by_ms)) for key, value in one]
            for one in rows["details"].to_pylist()
        ]
        at = rows.column_names.index("details")
        rows = rows.set_column(at, "details", pa.array(details, rows["details"].type))
    return rows


def _moved(text: str, by_ms: int) -> str:
    """A moment of the recording that a fact states, by so much later; other texts as they are."""
    return _MOMENT.sub(lambda found: str(int(found[0]) + by_ms), text) if by_ms else text


def _planted_events(events: pa.Table, plan: Planted, draw: random.Random) -> pa.Table:
    sample = next(r for r in events.to_pylist() if r["event_type"] == "CONSUMER_JOIN")
    rows = []
    for number, (at_ms, kind, group, host, channel) in enumerate(sorted(_changes(plan, draw))):
        row = sample | {
            "cluster": MADE,
            "event_ms": at_ms,
            "sequence": number,
            "event_type": kind,
            "consumer_group": group,
            "client_id": f"{host}@{channel}",
            "channel_id": f"{host}:{channel}",
            "subscriptions": [TOPIC] if kind == "CONSUMER_JOIN" else None,
            "source": f"made:{number}",
        }
        if kind != "CONSUMER_JOIN":
            row |= dict.fromkeys(
                ("strategy", "version", "message_model", "consume_from_where", "rebalance_mode")
            )
        rows.append(row)
    return pa.Table.from_pylist(rows, events.schema)


def _changes(plan: Planted, draw: random.Random) -> Iterator[tuple[int, str, str, str, int]]:
    begin = _DAY_START_MS + MINUTE_MS
    for group in (FLAPPING, DEPLOYED, QUIET):
        for pod in range(4):
            yield begin, "CONSUMER_JOIN", group, f"10.1.{len(group)}.{pod}", 1
    if plan.flaps:
        at_ms = _DAY_START_MS + 1 * HOUR_MS + draw.randrange(50) * MINUTE_MS
        for time in range(8):
            yield at_ms, "CONSUMER_JOIN", FLAPPING, FLAPPING_HOST, 100 + time
            yield at_ms + 50_000, "CONSUMER_LEAVE", FLAPPING, FLAPPING_HOST, 100 + time
            at_ms += 4 * MINUTE_MS
    if plan.deployed:
        at_ms = _DAY_START_MS + DEPLOY_HOUR * HOUR_MS + draw.randrange(1, 20) * MINUTE_MS
        for pod in range(4):
            host = f"10.1.{len(DEPLOYED)}.{pod}"
            yield at_ms, "CONSUMER_LEAVE", DEPLOYED, host, 1
            yield at_ms + 20_000, "CONSUMER_JOIN", DEPLOYED, host, 2
            at_ms += 3 * MINUTE_MS


def states_by(plans: list[Planted]) -> dict[str, Any]:
    """The state of each finding of `TOGGLED` after the last night, worked out night by night."""
    states: dict[str, str] = {}
    for plan in plans:
        for rule in TOGGLED:
            before = states.get(rule)
            if rule in plan.there:
                # an incomplete night has what its files show, and a group without a member needs
                # no other broker to have left its offsets
                states[rule] = {None: "NEW", "GONE": "REOPENED"}.get(before, "OPEN")
            elif before is not None and before != "GONE":
                states[rule] = "GONE" if plan.complete else "NOT_LOOKED_AT"
    return states
