"""The `night` job: collect, audit against the last good night, fold the history, remove old
nights.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from rebalance_core.cli import audit, collect, history
from rebalance_core.cli.deliver import lines_of
from rebalance_core.cli.job_options import (
    MARKDOWN,
    AuditOptions,
    CollectOptions,
    HistoryOptions,
    NightOptions,
)
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.options import JobOptions
from rebalance_core.cli.run.night_folders import Night, NightFolders
from rebalance_core.cli.run.output_folder import typed_place
from rebalance_core.cli.settings import settings_of
from rebalance_core.cli.terminal import DRY_RUN, exit_code_of, joined, say, warn
from rebalance_core.contracts.paths import local_path, refuse_no_folder
from rebalance_core.contracts.run_names import STATE, STATUS_FAILED, STATUS_OK
from rebalance_core.ingest.collection_settings import read_settings
from rebalance_core.model.errors import InputRefused, Terminated, UsageError
from rebalance_core.model.nouns import counted
from rebalance_core.storage.store_answers import reason_of

METRICS = "metrics.prom"
"""The file name of the metrics of an audit and of a history."""
AUDIT_TEXTFILE, HISTORY_TEXTFILE = "rebalance_audit.prom", "rebalance_history.prom"
NAMED = 3
"""Maximum number of uncollected parts, or removed items, that a line lists."""

Options = TypeVar("Options", bound=JobOptions)


@dataclass
class Afterwards:
    """What the steps after the verdict did."""

    history: Mapping[str, Any] | None = None
    removed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def run(options: NightOptions) -> JobReport:
    """Run the job and return the report for stdout. The exit code is the audit's."""
    folders = NightFolders(local_path(options.runs))
    _check_before_collecting(options)
    if options.dry_run:
        return _dry_run(options, folders)
    with folders.held():
        for died in folders.unfinished():
            _finish_died(died)
        previous = _last_good(folders, _cluster(options))
        state = None if previous is None else _state(previous, redacted=_is_redacted(options))
        night = folders.begin()
        missing: Sequence[Mapping[str, str]] = []
        try:
            if options.collection is None:
                missing = _collect(options, night, state)
            report = audit.run(_audit_options(options, night, previous, state))
        except BaseException as error:
            _give_up(night, error)
            raise
        night.written(STATUS_OK, int(report.exit_code))
        after = _after_verdict(options, folders, night)
    return _report(night, previous, missing, report, after, options)


def _check_before_collecting(options: NightOptions) -> None:
    """Raise the audit's and the history's errors about options before anything is copied."""
    settings_of(options)
    audit.check_before_reading(_audit_options(options), datetime.now(UTC).date())
    history.owners_of(options)
    if options.collection is not None:
        refuse_no_folder("--collection", local_path(options.collection))


def _audit_options(
    options: NightOptions,
    night: Night | None = None,
    previous: Night | None = None,
    state: str | None = None,
) -> AuditOptions:
    """Return the options for the night's audit; without a night, leave out those that depend on its
    folders.
    """
    collected = "" if night is None else str(night.collection)
    return _shared(
        AuditOptions,
        options,
        collection=options.collection or collected,
        output="" if night is None else str(night.audit),
        previous=None if previous is None else str(previous.audit),
        state=state,
        fail_on_new=None if previous is None else options.fail_on_new,
        overwrite=True,  # replaces the previous night's gate files
    )


def _history_options(options: NightOptions, folders: NightFolders) -> HistoryOptions:
    return _shared(
        HistoryOptions,
        options,
        runs=str(folders.nights),
        output=str(folders.history),
        overwrite=True,
        break_lock=True,  # the lock belongs to a run that died, since this run owns the folder
    )


def _state(previous: Night, *, redacted: bool) -> str | None:
    """Return the run whose evidence the night continues, or None if it kept no usable evidence.

    ``redacted`` states that tonight's collection is redacted, and so has different names.
    """
    if redacted:
        return None
    if not (previous.audit / STATE).is_dir():  # --redact-clients keeps no evidence
        say(f"the night {previous.name} has no evidence to continue from")
        return None
    try:
        collect.evidence_of(str(previous.audit))
    except InputRefused as error:
        warn(f"starts without the evidence of the night {previous.name}: {error}")
        return None
    return str(previous.audit)


def _is_redacted(options: NightOptions) -> bool:
    return options.collection is not None and read_settings(local_path(options.collection)).redacted


def _shared(kind: type[Options], options: NightOptions, **others: Any) -> Options:
    """Return the options of another job, taking values from the options of `night` with the same
    names.
    """
    own = {field.name for field in fields(options)}
    values = {f.name: getattr(options, f.name) for f in fields(kind) if f.name in own}
    return kind(**values | others)


def _finish_died(night: Night) -> None:
    """Close a night whose process died; it counts if its audit had finished."""
    if night.has_verdict():
        night.written(STATUS_OK)
        say(f"the night {night.name} ended after it reached a verdict, so it counts")
        return
    night.remove_half_written()
    night.written(STATUS_FAILED, error="the process died before the verdict")
    warn(
        f"the night {night.name} has no verdict because its process died; its unfinished files "
        "were removed"
    )


def _cluster(options: NightOptions) -> str:
    """Return the audited cluster."""
    if options.collection is None:
        return options.cluster
    return read_settings(local_path(options.collection)).cluster


def _last_good(folders: NightFolders, cluster: str) -> Night | None:
    """Return the last night with a usable audit, reporting each damaged one.

    Args:
        folders: the folders of all nights.
        cluster: nights of other clusters are skipped.
    """
    for night in reversed(folders.all()):
        if not night.has_verdict():
            continue
        try:
            outcome, _ = audit.audit_record(typed_place(str(night.audit)))
        except InputRefused as error:
            warn(f"not compared with the night {night.name}: {error}")
            continue
        if cluster in outcome.get("clusters", {}):
            return night
    return None


def _collect(options: NightOptions, night: Night, state: str | None) -> Sequence[Mapping[str, str]]:
    """Collect, copying logs from where the run with the state ended; return the missing parts."""
    since = "logs whole" if state is None else f"logs from where {state} ended"
    say(f"collecting into {night.collection}, {since}")
    asked = _shared(CollectOptions, options, output=str(night.collection), state=state)
    report = collect.run(asked)
    missing: Sequence[Mapping[str, str]] = report.facts["failed"]
    return missing


def _give_up(night: Night, error: BaseException) -> None:
    """Remove the files of a half-written night, or all of a night without a collection."""
    try:
        night.remove_half_written()
        if night.collection.exists() or night.audit.exists():
            night.written(STATUS_FAILED, exit_code_of(error), str(error))
        else:
            night.remove()
    except OSError as second:  # the first error is more informative
        warn(f"{night.folder}: {reason_of(second)}")


# The night now has its verdict, which no later failure may change.
def _after_verdict(options: NightOptions, folders: NightFolders, night: Night) -> Afterwards:
    after = Afterwards()
    steps: Mapping[str, Callable[[], None]] = {
        "metrics of the audit": lambda: _publish(options, night.audit, AUDIT_TEXTFILE),
        "history": lambda: _fold(options, folders, after),
        "removal of old nights": lambda: _remove_old(options, folders, night, after),
    }
    for name, step in steps.items():
        try:
            step()
        except (KeyboardInterrupt, Terminated):
            after.failed.append(f"{name}: interrupted; the later steps were skipped")
            break
        except Exception as error:
            why = reason_of(error) if isinstance(error, OSError) else str(error)
            after.failed.append(f"{name}: {why}")
    for failure in after.failed:
        warn(f"{failure}; the verdict stands")
    return after


def _publish(options: NightOptions, folder: Path, name: str) -> None:
    """Copy metrics into the exporter's folder atomically, so that it never reads half a file."""
    if options.textfiles is None:
        return
    target = Path(options.textfiles) / name
    aside = target.with_name(f"{name}.{os.getpid()}")  # the exporter reads *.prom
    try:
        shutil.copyfile(folder / METRICS, aside)
        aside.replace(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {reason_of(error)}") from error
    finally:
        aside.unlink(missing_ok=True)


def _fold(options: NightOptions, folders: NightFolders, after: Afterwards) -> None:
    after.history = history.run(_history_options(options, folders)).facts
    _publish(options, folders.history, HISTORY_TEXTFILE)


def _remove_old(
    options: NightOptions, folders: NightFolders, current: Night, after: Afterwards
) -> None:
    now = current.began
    for night in folders.older_than(options.keep, now):
        try:
            night.remove()
        except OSError as error:
            after.failed.append(f"the night {night.name} was not removed: {reason_of(error)}")
        else:
            after.removed.append(night.name)
    for night in folders.older_than(options.keep_collections, now):
        if night.collection.is_dir():
            night.remove_collection()
            after.removed.append(f"collection of {night.name}")
        night.remove_state()


def _report(
    night: Night,
    previous: Night | None,
    missing: Sequence[Mapping[str, str]],
    report: JobReport,
    after: Afterwards,
    options: NightOptions,
) -> JobReport:
    facts = {
        **report.facts,
        "job": "night",
        "night": night.name,
        "collection": options.collection or str(night.collection),
        "compared_with": None if previous is None else previous.name,
        "not_collected": list(missing),
        "history": after.history,
        "removed": after.removed,
        "failed_after_verdict": after.failed,
    }
    if options.format == MARKDOWN:
        return JobReport(report.text, facts, report.exit_code)
    compared = "the first" if previous is None else f"compared with {previous.name}"
    lines = [f"Night {night.name}, {compared}"]
    if missing:
        names = _some([part["what"] for part in missing])
        lines += [f"Incomplete: {counted(len(missing), 'part')} not collected: {names}"]
    lines += ["", *report.text.split("\n"), ""]
    if after.history is not None:
        states = after.history["findings"].items()
        found = ", ".join(f"{state} {count:,}" for state, count in states if count)
        nights = counted(after.history["nights"], "night")
        lines += [f"History of {nights}: {found or 'no finding'}"]
        lines += lines_of(after.history["deliveries"] or ())
        lines += [f"Page: {after.history['output']}/{history.PAGE}"]
    if after.removed:
        lines += [f"Removed because of age: {_some(after.removed)}"]
    return JobReport(joined(lines), facts, report.exit_code)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _dry_run(options: NightOptions, folders: NightFolders) -> JobReport:
    previous = _last_good(folders, _cluster(options))
    now = datetime.now(UTC)
    old = [night.name for night in folders.older_than(options.keep, now)]
    facts: dict[str, Any] = {
        "job": "night",
        "dry_run": True,
        "exit_code": 0,
        "compared_with": None if previous is None else previous.name,
        "removed": old,
    }
    lines = [*DRY_RUN]
    if options.collection is None:
        asked = _shared(CollectOptions, options, output=str(folders.nights / "TIME/collection"))
        facts["command"] = collect.run(asked).facts["command"]
        lines += ["collects with", f"  {' '.join(facts['command'])}"]
    else:
        lines += [f"collects nothing and audits {options.collection}"]
    lines += [f"compares with {facts['compared_with'] or 'no earlier night'}"]
    lines += [f"folds {folders.nights} into {folders.history}"]
    lines += [f"removes {_some(old)}"] if old else []
    if options.deliver and any(night.has_verdict() for night in folders.all()):
        report = history.run(_history_options(options, folders))
        facts["deliveries"] = report.facts["deliveries"]
        lines += ["of the existing nights, and delivers", *lines_of(facts["deliveries"])]
    return JobReport(joined(lines), facts)
