"""The `read-metrics` job, from its files to the tables, the record and the summary."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from typing import Any

from rebalance_core.checks.digest import TableWritten
from rebalance_core.cli import terminal
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.planning_options import ReadMetricsOptions
from rebalance_core.cli.run.backend import backend_of
from rebalance_core.cli.run.input_files import check_readable, fingerprint
from rebalance_core.cli.run.run_record import Origin, RunOutcome
from rebalance_core.cli.settings import settings_of
from rebalance_core.cli.terminal import utc
from rebalance_core.model.nouns import counted
from rebalance_core.planning.autoscale.recorded_load import RecordedLoad, known_share, span_of
from rebalance_core.process.read_metrics import WRITTEN, Meant, read_metrics, write_metrics

_SHOWN = 10
"""Number of periods without a rate that the text lists; ``--json`` has all."""


def run(options: ReadMetricsOptions) -> JobReport:
    """Run the job and return the report for stdout."""
    settings = settings_of(options)
    for file in options.answer:
        check_readable("--answer", file, "json")
    backend = backend_of("read-metrics", options, settings, options.answer)
    meant = Meant(options.threads, options.cluster, dict(options.deployment))
    if options.dry_run:
        backend.check_free()
        load = backend.run(read_metrics, options.answer, meant, warn=terminal.warn)
        facts = {"job": "read-metrics", "dry_run": True, "exit_code": 0, **_facts(load)}
        lines = [*terminal.DRY_RUN, *_lines(load), *terminal.output_lines(options.output, WRITTEN)]
        return JobReport(
            terminal.joined(lines), facts | {"output": options.output, "tables": list(WRITTEN)}
        )
    with backend.running(WRITTEN) as output:
        load = backend.run(read_metrics, options.answer, meant, warn=terminal.warn)
        written = backend.run(write_metrics, load, backend.output(), before_writing=output.clear)
        record = output.finish(
            RunOutcome(
                outputs=written.tables,
                origin=_origin(load, written.tables),
                inputs=[fingerprint("answer", file, backend.session) for file in options.answer],
            )
        )
    results = _facts(load) | {"rows": {name: table.rows for name, table in written.tables.items()}}
    facts = terminal.result_facts(
        "read-metrics", options.output, results, record.seconds, backend.name
    )
    lines = [f"Metrics in {options.output} ({terminal.took(facts)})", "", *_lines(load)]
    lines += terminal.output_lines(options.output, WRITTEN)
    return JobReport(terminal.joined(lines), facts)


def _origin(load: RecordedLoad, written: Mapping[str, TableWritten]) -> Origin:
    digests = {name: table.digest for name, table in written.items()}
    clusters = {row["cluster"] for row in load.arrivals if row["cluster"] is not None}
    return Origin(digests, sorted(clusters), *(span_of(load) or (None, None)))


def _facts(load: RecordedLoad) -> dict[str, Any]:
    from_ms, to_ms = span_of(load) or (None, None)
    return {
        "from_ms": from_ms,
        "to_ms": to_ms,
        "known": known_share(load),
        "capacity": load.capacity,
        "unmeasured": {_name(*of): why for of, why in load.unmeasured.items()},
        "unknown": [asdict(each) for each in load.unknown],
    }


def _name(cluster: str | None, group: str) -> str:
    return group if cluster is None else f"{cluster}/{group}"


def _lines(load: RecordedLoad) -> Iterator[str]:
    """Yield what is known and what is not, as lines of text."""
    from_ms, to_ms = span_of(load) or (None, None)
    yield f"Messages that come, {utc(from_ms)} to {utc(to_ms)}"
    shares = known_share(load)
    mean = dict.fromkeys(shares, 0.0)
    length = (to_ms or 1) - (from_ms or 0)
    for row in load.arrivals:
        parts = row["cluster"], row["topic"], row["broker_name"]
        name = "/".join(part for part in parts if part is not None)
        come = row["messages_per_second"] * (row["to_ms"] - row["from_ms"])
        mean[name] += come / (length * shares[name])
    cells = [[n, f"{mean[n]:,.1f}", f"{share:.1%}"] for n, share in shares.items()]
    yield from terminal.table(("topic", "a second", "time known"), cells)
    yield from ("", "Service times, where the members were behind")
    for served in load.capacity:
        low, high = served["service_ms_low"], served["service_ms_high"]
        name = _name(served["cluster"], served["consumer_group"])
        yield (
            f"  {name}  {served['service_ms']:,.4g} ms ({low:,.4g} to {high:,.4g}) with "
            f"{served['threads']} threads"
        )
    for of, why in load.unmeasured.items():
        yield f"  {_name(*of)}  UNKNOWN: {why}"
    if not load.capacity and not load.unmeasured:
        yield "  no group has a series"
    if load.unknown:
        yield from ("", f"UNKNOWN: {counted(len(load.unknown), 'gap')}")
        yield from (f"  {each}" for each in islice(load.unknown, _SHOWN))
        if len(load.unknown) > _SHOWN:
            yield f"  and {len(load.unknown) - _SHOWN:,} more; --json has all"
