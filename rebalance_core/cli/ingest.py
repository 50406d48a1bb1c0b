"""The `ingest` job: list the collection, read it in the chosen runtime, then record and summarise
the run.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rebalance_core.cli import terminal
from rebalance_core.cli.job_options import IngestOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.run.backend import backend_of
from rebalance_core.cli.run.ingest_outcome import ingest_outcome, reading_line
from rebalance_core.cli.settings import Settings, assumptions, settings_of
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.contracts.run_names import STATE
from rebalance_core.ingest.collection import Collection
from rebalance_core.model.file_statuses import READ
from rebalance_core.process.ingest import ingest_and_write

if TYPE_CHECKING:
    from rebalance_core.ingest.file_record import FileRecord

WORST_FILES = 5


def run(options: IngestOptions) -> JobReport:
    """Run the job and return the report for stdout."""
    settings = settings_of(options)
    assumed = assumptions(settings)
    backend = backend_of("ingest", options, settings, [options.collection], [options.state])
    collection = backend.continued(backend.collection(options.collection), options.state)
    if options.dry_run:
        backend.check_free()
        return _dry_run(options, settings, collection)
    with backend.running((*INGESTED_TABLES, STATE)) as output:
        terminal.say(reading_line(options.collection, options.state, collection))
        written = backend.run(
            ingest_and_write,
            collection,
            backend.output(),
            assumed,
            of="files",
            state_output=backend.output(STATE),
            before_writing=output.clear,
        )
        outcome = ingest_outcome(
            options.collection, options.state, collection, written, backend.session
        )
        output.record_below(STATE, "ingest", replace(outcome, outputs=written.state))
        record = output.finish(outcome)
    rows = {name: table.rows for name, table in written.tables.items()}
    results = _results(record.files, rows, record.rejected, written.counts.findings)
    facts = terminal.result_facts("ingest", options.output, results, record.seconds, backend.name)
    return JobReport(_render(facts), facts)


def _dry_run(options: IngestOptions, settings: Settings, collection: Collection) -> JobReport:
    """List the files that a run would read, without reading them in full."""
    kinds = Counter(file.kind for file in collection.own_files)
    sizes: Counter[str] = Counter()
    for file in collection.own_files:
        sizes[file.kind] += file.size - (0 if file.gzipped else file.begins_at)
    facts = {
        "job": "ingest",
        "dry_run": True,
        "exit_code": 0,
        "cluster": collection.settings.cluster,
        "files": {kind: {"files": n, "bytes": sizes[kind]} for kind, n in kinds.items()},
        "refused": [{"file": file.source, "code": file.code} for file in collection.refused],
        "output": options.output,
        "tables": list(INGESTED_TABLES),
        "config": settings.as_dict(),
    }
    lines = [*terminal.DRY_RUN, f"cluster  {facts['cluster']}", ""]
    lines += [f"  {k:<26} {n:>6,} files {sizes[k]:>15,} bytes" for k, n in sorted(kinds.items())]
    if collection.refused:
        lines += ["", "refused", *(f"  {file.message}" for file in collection.refused)]
    lines += terminal.output_lines(options.output, tuple(INGESTED_TABLES))
    return JobReport(terminal.joined(lines), facts)


def _results(
    files: "Sequence[FileRecord]",
    rows: Mapping[str, int],
    rejected: Mapping[str, int],
    findings: Mapping[str, int],
) -> dict[str, Any]:
    """Return the results of a run: the files with the shares understood, and the tables' row
    counts.
    """
    lines = sum(file["lines"] for file in files)
    read = sum(file["understood"] for file in files)
    worst = sorted(
        (file for file in files if file["understood"] < file["lines"]),
        key=lambda file: (file["share_understood"], file["name"]),
    )
    return {
        "files": sum(file["status"] == READ for file in files),
        **terminal.file_facts(files),
        "lines": lines,
        "share_understood": round(read / lines, 4) if lines else None,
        "least_understood": [
            {name: file[name] for name in ("name", "lines", "share_understood")}
            for file in worst[:WORST_FILES]
        ],
        "rejected_rows": rows.get("rejected", 0),
        "rejected": dict(rejected),
        "findings": dict(sorted(findings.items())),
        "rows": dict(rows),
    }


def _render(facts: Mapping[str, Any]) -> str:
    """Return the summary as text: the tables, and how much of the files was understood."""
    share = facts["share_understood"]
    shown = "nothing to read" if share is None else f"{share:.2%} of {facts['lines']:,} lines"
    lines = [
        f"Tables in {facts['output']} ({terminal.took(facts)})",
        f"Understood: {shown}, {facts['files']:,} files",
        "",
        *terminal.numbers(facts["rows"]),
    ]
    for title, counts in (("rejected", facts["rejected"]), ("findings", facts["findings"])):
        if counts:
            lines += ["", f"{title}: {terminal.by_code(counts)}"]
    if facts["least_understood"]:
        lines += ["", "least understood"]
        lines += [
            f"  {file['share_understood']:>7.2%}  {file['lines']:>9,} lines  {file['name']}"
            for file in facts["least_understood"]
        ]
    return terminal.joined(lines)
