"""The `history` job: list the runs, read their records, fold them, and write tables, page and
metrics.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pyarrow as pa

from rebalance_core.cli import terminal
from rebalance_core.cli.deliver import (
    check_webhooks,
    deliver,
    facts_of,
    lines_of,
    would_deliver,
)
from rebalance_core.cli.job_options import HistoryOptions, NightOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.run.backend import backend_of
from rebalance_core.cli.run.in_process import Backend
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.night_folders import AUDIT_FOLDER, NIGHT_RECORD, NIGHTS
from rebalance_core.cli.run.run_record import Origin, RunOutcome
from rebalance_core.cli.settings import settings_of
from rebalance_core.contracts import HISTORY_TABLES
from rebalance_core.contracts.history import FINDING_STATES, GROUP_NIGHTS, OVER, subject_of
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.contracts.run_names import STATUS_OK
from rebalance_core.contracts.settings_file import option_text
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.history.metrics import render_metrics
from rebalance_core.history.night import READ_TABLES
from rebalance_core.history.owners import Owner, Owners, read_owners
from rebalance_core.history.runs import (
    AUDIT,
    PROPAGATE,
    RunList,
    choose_runs,
)
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.process.history import fold_history, write_history
from rebalance_core.report.history_page import render_history
from rebalance_core.report.visible import visible
from rebalance_core.storage.run_folder import (
    DamagedRecord,
    Folder,
    counted_rows,
    find_run,
    refuse_unfinished,
)
from rebalance_core.storage.store_answers import reason_of, refusal, store_failed

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import NightsRow, OpenFindingsRow, RowsByTable
    from rebalance_core.contracts.run_record import StoredRun

PAGE, METRICS = "history.html", "metrics.prom"
WRITTEN = (*HISTORY_TABLES, PAGE, METRICS)
SHOWN_OF_GROUPS = (
    "cluster", "consumer_group", "end_ms", "verdict", "epochs", "moved", "minimum_moves",
    "orphan_ms", "shared_ms", "behind",
)  # fmt: skip
"""Columns of ``group_nights`` that the page, metrics and summary read."""
TOP_FINDINGS = 12
LEFT_OUT_SHOWN = 5
LONGEST_REASON = 500  # characters
TABLES_READ = {AUDIT: READ_TABLES, PROPAGATE: (PROPAGATION.name,)}
"""The tables read from a run, by job."""


def run(options: HistoryOptions) -> JobReport:
    """Run the job and return the report for stdout."""
    settings = settings_of(options)
    owners = owners_of(options)
    backend = backend_of("history", options, settings, others=[options.runs])
    if options.dry_run:
        backend.check_free()
        return _dry_run(options, backend, owners)
    with backend.running(WRITTEN) as output:
        runs = _runs(backend, options.runs)
        for text in runs.left_out:
            terminal.warn(f"left out: {text}")
        terminal.say(f"folding {_nights(len(runs.nights))} of {options.runs}")
        left_out = list(runs.left_out)

        def leave_out(text: str) -> None:
            left_out.append(_shown(text))
            terminal.warn(f"left out: {left_out[-1]}")

        tables = backend.run(fold_history, runs, owners.entries, leave_out=leave_out, of="nights")
        if not len(tables["nights"]):
            _refuse_no_night(options.runs, left_out)
        output.clear()
        written = backend.run(write_history, tables, backend.output())
        rows = _rows(tables)
        page = render_history(rows, owners.entries, left_out)
        (output.folder / PAGE).write_text(page)
        (output.folder / METRICS).write_text(_metrics(rows, owners.entries, len(left_out)))
        record = output.finish(
            RunOutcome(
                outputs=written,
                origin=_origin(rows["nights"]),
                inputs=[fingerprint("runs", options.runs, backend.session)],
            )
        )
    results = _results(rows, left_out)
    # after the record, because a delivery must not affect the history
    results["deliveries"] = (
        facts_of(deliver(rows, owners, output.folder)) if options.deliver else None
    )
    facts = terminal.result_facts("history", options.output, results, record.seconds, backend.name)
    return JobReport(_render(facts), facts)


def owners_of(options: HistoryOptions | NightOptions) -> Owners:
    """Return the owners of groups, from the file that ``--owners`` names.

    Raises:
        UsageError: the file is invalid, or ``--deliver`` lacks a webhook.
    """
    path = options.owners
    owners = Owners() if path is None else read_owners(option_text("--owners", path), path)
    if options.deliver:
        check_webhooks(owners)
    return owners


def _rows(tables: Mapping[str, pa.Table]) -> "RowsByTable":
    shown = {**tables, GROUP_NIGHTS.name: tables[GROUP_NIGHTS.name].select(SHOWN_OF_GROUPS)}
    return cast("RowsByTable", {name: rows_of_arrow(table) for name, table in shown.items()})


def _runs(backend: Backend, location: str) -> RunList:
    """Return the nights of a folder, or of its folder ``nights``.

    Raises:
        InputRefused: the folder does not exist, is itself a run, or contains no audit.
    """
    try:
        folder = backend.folder(location)
        if _is_run(folder):
            raise InputRefused(
                f"--runs {location} is a single run; name the folder that contains the runs"
            )
        names = folder.names()
        place = location.rstrip("/")
        if NIGHTS in names and not _is_run(folder / NIGHTS):  # the folder of `rebalance night`
            place = f"{place}/{NIGHTS}"
            names = backend.folder(place).names()
    except OSError as error:
        raise refusal(error, f"--runs {location} cannot be read", InputRefused) from error
    left_out: list[str] = []
    runs = choose_runs(_records(backend, place, names, left_out))
    runs = replace(runs, left_out=[_shown(text) for text in (*left_out, *runs.left_out)])
    if not runs.nights:
        _refuse_no_night(location, runs.left_out)
    return runs


def _refuse_no_night(location: str, left_out: Sequence[str]) -> NoReturn:
    why = "\n".join(left_out[:LEFT_OUT_SHOWN]) or "none of its folders contains a run"
    raise InputRefused(f"--runs {location} has no usable audit:\n{why}")


def _shown(text: str) -> str:
    """Return a folder's name and the reason on one line, whatever characters they contain."""
    return visible(text, LONGEST_REASON)


def _is_run(folder: Folder) -> bool:
    try:
        return find_run(folder) is not None
    except DamagedRecord:
        return True


def _records(
    backend: Backend, location: str, names: Sequence[str], left_out: list[str]
) -> Iterator[tuple[str, "StoredRun | None"]]:
    """Yield each folder with its record, skipping files and hidden folders.

    Damaged folders are added to ``left_out`` as ``FOLDER: reason`` and do not affect other nights.
    """
    for name in names:
        if name.startswith("."):
            continue
        where = f"{location}/{name}"
        try:
            folder = backend.folder(where)
            if NIGHT_RECORD in folder.names():
                folder = folder / AUDIT_FOLDER
                yield folder.url, _record(folder)
                continue
            record = _record(folder)
            if record is not None or folder.names():
                yield folder.url, record
        except (InputRefused, UsageError) as error:
            reason = str(error).removeprefix(where).lstrip(":/ ")
            left_out.append(f"{where}: {reason}")
        except (OSError, pa.ArrowException) as error:
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            if store_failed(error):
                raise
            left_out.append(f"{where}: cannot be read: {reason}")


def _record(folder: Folder) -> "StoredRun | None":
    """Return the record of a run, after checking that the tables to be read match it."""
    record = find_run(folder)
    refuse_unfinished(folder, record)
    if record is None or record["status"] != STATUS_OK or record["job"] not in TABLES_READ:
        return record
    counted_rows(folder, record, TABLES_READ[record["job"]])
    return record


def _origin(nights: "Sequence[NightsRow]") -> Origin:
    """Return the origin of the history: the id of each night's run."""
    return Origin(
        {f"{row['cluster']}/{row['end_ms']}": row["run_id"] for row in nights},
        sorted({row["cluster"] for row in nights}),
        min(row["start_ms"] for row in nights),
        max(row["end_ms"] for row in nights),
    )


def _metrics(rows: "RowsByTable", owners: Sequence[Owner], left_out: int) -> str:
    last = {row["cluster"]: row for row in rows["nights"]}
    ends = {(name, row["end_ms"]) for name, row in last.items()}
    groups = [row for row in rows["group_nights"] if (row["cluster"], row["end_ms"]) in ends]
    return render_metrics(list(last.values()), groups, rows["open_findings"], owners, left_out)


def _results(rows: "RowsByTable", left_out: Sequence[str]) -> dict[str, Any]:
    states = Counter(row["state"] for row in rows["open_findings"])
    nights = rows["nights"]
    standing = [row for row in rows["open_findings"] if row["state"] not in OVER]
    standing.sort(key=lambda row: (row["caused_by"] is not None, -row["nights_seen"]))
    return {
        "nights": len(nights),
        "clusters": sorted({row["cluster"] for row in nights}),
        "first_ms": min(row["start_ms"] for row in nights),
        "last_ms": max(row["end_ms"] for row in nights),
        "incomplete": sum(not row["complete"] for row in nights),
        "groups": len({(row["cluster"], row["consumer_group"]) for row in rows["group_nights"]}),
        "findings": {state: states[state] for state in FINDING_STATES},
        "standing": [
            {
                "cluster": row["cluster"],
                "rule_id": row["rule_id"],
                "consumer_group": row["consumer_group"],
                "topic": row["topic"],
                "broker_name": row["broker_name"],
                "state": row["state"],
                "nights_seen": row["nights_seen"],
                "owner": row["owner"],
                "summary": row["summary"],
            }
            for row in standing[:TOP_FINDINGS]
        ],
        "flaps": len(rows["flaps"]),
        "left_out": list(left_out),
    }


def _render(facts: Mapping[str, Any]) -> str:
    incomplete = f", {facts['incomplete']:,} incomplete" if facts["incomplete"] else ""
    lines = [
        f"History in {facts['output']} ({terminal.took(facts)})",
        f"{terminal.utc(facts['first_ms'])} to {terminal.utc(facts['last_ms'])}: "
        f"{_nights(facts['nights'])}{incomplete} of {', '.join(facts['clusters'])}",
        "",
        "Findings by state",
        *terminal.numbers(facts["findings"]),
    ]
    if facts["standing"]:
        lines += ["", "Seen in most nights and still open"]
        lines += [f"  {_standing(row)}" for row in facts["standing"]]
    if facts["flaps"]:
        lines += [
            "",
            f"{facts['flaps']:,} groups and hosts flap, or change at the same hour on several "
            "nights (table flaps)",
        ]
    if facts["left_out"]:
        lines += ["", f"Left out: {len(facts['left_out']):,} folders, named above"]
    if facts["deliveries"]:
        lines += ["", "Deliveries", *(f"  {line}" for line in lines_of(facts["deliveries"]))]
    lines += ["", f"Page: {facts['output']}/{PAGE}"]
    return terminal.joined(lines)


def _standing(row: "OpenFindingsRow") -> str:
    owner = f" ({row['owner']})" if row["owner"] else ""
    about = f"{row['rule_id']} {subject_of(row)}"
    return f"{row['state']}, {_nights(row['nights_seen'])}: {about}{owner}: {row['summary']}"


def _nights(number: int) -> str:
    return f"{number:,} night" + "s" * (number != 1)


def _dry_run(options: HistoryOptions, backend: Backend, owners: Owners) -> JobReport:
    runs = _runs(backend, options.runs)
    deliveries = []
    if options.deliver:
        ignored: list[str] = []
        tables = backend.run(fold_history, runs, owners.entries, leave_out=ignored.append)
        folder = backend.folder(options.output)
        deliveries = facts_of(would_deliver(_rows(tables), owners, folder))
    facts: dict[str, Any] = {
        "job": "history",
        "dry_run": True,
        "exit_code": 0,
        "nights": len(runs.nights),
        "propagated": len(runs.propagated),
        "left_out": list(runs.left_out),
        "output": options.output,
        "tables": list(HISTORY_TABLES),
        "deliveries": deliveries if options.deliver else None,
    }
    lines = [*terminal.DRY_RUN, f"{_nights(len(runs.nights))} of {options.runs}"]
    lines += [f"  left out: {text}" for text in runs.left_out]
    lines += terminal.output_lines(options.output, tuple(HISTORY_TABLES))
    lines += lines_of(deliveries)
    return JobReport(terminal.joined(lines), facts)
