"""`python -m tests.bench.runs.day`: a generated day of a fleet, in a process and on Spark."""

import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from rebalance_core.model.events import CONSUMER_JOIN, MASTER_DOWN, MASTER_UP, TOPIC_CONFIG
from rebalance_core.process.generate import generate_and_write
from rebalance_core.synthetic.fleet import FleetPlan
from tests.bench.report import Figure, Report, Table, bench_main, say, tidy
from tests.bench.runs.jobs import MEMORY_LIMIT_MIB, empty_application, run_job
from tests.bench.runs.yardstick import yardstick

WHOLE_DAY = 10_000
"""Groups that the targets are for."""
PROCESS_SECONDS, TIMES_PROCESS = 30.0, 1.5
REPLAYED = 1 / 10_000
OUTAGE_MS = 3_600_000
GROUPS_PER_CHANGED, JOINS, HOUR_MS = 50, 3, 3_600_000
"""In the night after, 2 % of the groups get so many members, from an hour later on."""
NEXT_NIGHT_SHARE, NIGHTS = 0.15, 3
MOST_TIMES_DAY = 2.0
"""What an outage may cost: nearly every group of a cluster changes while it lasts."""
ABOUT = """\
The day is that of `rebalance generate` with seed 1. With an outage, one broker in each cluster
has no master for an hour. The night after begins at the end of the day (`--state`), and its
figures are the median of three runs. The bench asserts that both runtimes write the same digests
and that the replay handles at most one group in 10,000 (with the outage, one in 50)."""


def day(groups: int = 1_000, spark: int = 1) -> Report:
    """Run a day of so many groups.

    Args:
        groups: How many; the targets are for 10,000.
        spark: 0: in a process only.
    """
    unit = yardstick()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "day"
        generate_and_write(FleetPlan(groups=groups, days=1, seed=1), source)
        runs = {}
        for carrier in ("process", "spark") if spark else ("process",):
            output = Path(folder) / carrier
            runs[carrier] = run_job("simulate", output, "--input", str(source), "--run-on", carrier)
            say(f"  {groups:,} groups {carrier}: {runs[carrier].cost.seconds:.1f} s")
        night = Path(folder) / "night"
        changed = next_night(source, night)
        opened = ["--input", str(night), "--state", str(Path(folder) / "process")]
        nights = [
            run_job("simulate", Path(folder) / f"after-{number}", *opened, "--run-on", "process")
            for number in range(NIGHTS)
        ]
        after = sorted(nights, key=lambda run: run.cost.processor_seconds)[NIGHTS // 2]
        assert after.record["outputs"]["epochs"]["rows"] == changed * JOINS, "other epochs"
        say(f"  the night after, {changed} groups changed: {after.cost.seconds:.1f} s")
        empty = empty_application(source) if spark else None
        lose_masters(source)
        outage = run_job(
            "simulate", Path(folder) / "outage", "--input", str(source), "--run-on", "process"
        )
        say(f"  {groups:,} groups, an outage: {outage.cost.seconds:.1f} s")
    process = runs["process"]
    assert all(run.digests == process.digests for run in runs.values()), "other rows on Spark"
    replayed = process.record["replayed_groups"]
    assert replayed <= max(1, groups * REPLAYED), f"{replayed} groups were replayed"
    replayed = outage.record["replayed_groups"]
    assert replayed <= groups / 50, f"{replayed} groups of the day with an outage were replayed"
    seconds = process.cost.processor_seconds
    whole = groups == WHOLE_DAY
    figures = [
        Figure(
            f"a day of {groups:,} groups in a process",
            tidy(seconds),
            "s",
            target=PROCESS_SECONDS if whole else None,
        ),
        Figure(f"a day of {groups:,} groups in a process / yardstick", tidy(seconds / unit)),
    ]
    peaks = [c for run in runs.values() for kind, c in run.cost.peak_mib.items() if kind != "jvm"]
    costs = {name: run.cost for name, run in runs.items()}
    costs[f"process, the night after, {changed} groups changed"] = after.cost
    figures.append(
        Figure(
            f"the night after a day of {groups:,} groups / the day, in a process",
            tidy(after.cost.processor_seconds / seconds),
            target=NEXT_NIGHT_SHARE if whole else None,
        )
    )
    costs[f"process, a day with an outage, {replayed} groups left to the replay"] = outage.cost
    figures.append(
        Figure(
            f"a day of {groups:,} groups with an outage / the day, in a process",
            tidy(outage.cost.processor_seconds / seconds),
            target=MOST_TIMES_DAY,
        )
    )
    if empty is not None:
        costs["an empty Spark application"] = empty
        above = runs["spark"].cost.processor_seconds - empty.processor_seconds
        figures.append(
            Figure(
                f"(a day of {groups:,} groups on Spark - an empty application) / in a process",
                tidy(above / seconds),
                target=TIMES_PROCESS if whole else None,
            )
        )
    figures.append(
        Figure(
            f"most memory of a process that is no JVM, a day of {groups:,} groups",
            round(max(peaks)),
            "MiB",
            target=MEMORY_LIMIT_MIB,
        )
    )
    inputs = {one["table"]: one["rows"] for one in process.record["inputs"]}
    outputs = process.record["outputs"]
    return Report(
        "A day of a fleet",
        ABOUT,
        tuple(figures),
        (
            Table(
                ("run", "processor s", "s", "worker or process, MiB", "JVM, MiB"),
                tuple(
                    (
                        name,
                        tidy(c.processor_seconds),
                        tidy(c.seconds),
                        round(max(m for kind, m in c.peak_mib.items() if kind != "jvm")),
                        round(c.peak_mib["jvm"]) if "jvm" in c.peak_mib else None,
                    )
                    for name, c in costs.items()
                ),
                f"{groups:,} groups; {sum(inputs.values()):,} rows in, {process.rows:,} out.",
            ),
            Table(
                ("table", "rows"),
                tuple((n, r) for n, r in inputs.items())
                + tuple((n, t["rows"]) for n, t in outputs.items()),
            ),
        ),
    )


def next_night(day: Path, night: Path) -> int:
    """Write the joins of the night after; return how many groups get them."""
    table = ds.dataset(day / "cluster_events", format="parquet").to_table()
    joins = table.filter(pc.equal(table["event_type"], CONSUMER_JOIN)).to_pylist()
    first = {(row["cluster"], row["consumer_group"]): row for row in reversed(joins)}
    changed = [first[name] for name in sorted(first)[::GROUPS_PER_CHANGED]]
    begin_ms = pc.max(table["event_ms"]).as_py() + HOUR_MS
    rows = [
        row
        | {
            "event_ms": begin_ms + 1_000 * number,
            "sequence": n,
            "detail": None,
            "client_id": f"10.9.9.{n}@{number}#1",
            "channel_id": f"10.9.9.{n}:{number}",
        }
        for n in range(JOINS)
        for number, row in enumerate(changed, n * len(changed))
    ]
    night.mkdir()
    pq.write_table(pa.Table.from_pylist(rows, table.schema), night / "cluster_events.parquet")
    return len(changed)


def lose_masters(day: Path) -> None:
    """In each cluster the first broker's master goes after a third of the day, for an hour."""
    folder = day / "cluster_events"
    table = ds.dataset(folder, format="parquet").to_table()
    first_ms, last_ms = (f(table["event_ms"]).as_py() for f in (pc.min, pc.max))
    down_ms = first_ms + (last_ms - first_ms) // 3
    configs = table.filter(pc.equal(table["event_type"], TOPIC_CONFIG))
    brokers = configs.group_by("cluster").aggregate([("broker_name", "min")]).to_pylist()
    rows = [
        {
            "cluster": one["cluster"],
            "event_ms": at_ms,
            "sequence": 0,
            "event_type": kind,
            "broker_name": one["broker_name_min"],
        }
        for one in brokers
        for kind, at_ms in ((MASTER_DOWN, down_ms), (MASTER_UP, down_ms + OUTAGE_MS))
    ]
    shutil.rmtree(folder)
    folder.mkdir()
    more = pa.Table.from_pylist(rows, schema=table.schema)
    pq.write_table(pa.concat_tables([table, more]), folder / "part-0.parquet")


if __name__ == "__main__":
    bench_main(day, __doc__, groups=1_000, spark=1)
