"""The options of jobs on recorded data, and the options that several jobs share.

Options of the jobs that simulate the future are in `planning_options`.
"""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from rebalance_core.cli.options import (
    PROCESS,
    JobOptions,
    RowOptions,
    database_name,
    file_format,
    flag,
    group_pattern,
    instant,
    mounted_folder,
    number,
    one_of,
    option,
    strategy_text,
    whole,
)
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import MOST_DIGITS
from rebalance_core.model.verdicts import ERROR, SEVERITIES

EITHER = "input: a folder, single tables, or a database"
OUTPUT = "folder for the tables, new or empty; required"
FORMAT = "json, csv or parquet; default: from the file suffix"
LARGEST_SEED = 2**63 - 1
_EVENT_TIME = re.compile(r"\bevent_ms\b", re.IGNORECASE)


def _input_tables() -> Any:
    return option(
        "DB",
        "on Spark: the catalog database that has the tables, CATALOG.DATABASE; default: none",
        read=database_name,
        group=EITHER,
    )


def _where() -> Any:
    return option(
        "SQL", "only rows of --input-tables that satisfy this condition; default: all", group=EITHER
    )


def _state() -> Any:
    return option(
        "RUN", "folder of an earlier run; this run begins where it ended; default: no earlier run"
    )


def _check_where(values: dict[str, Any], mistakes: list[str]) -> None:
    if values["where"] is not None and values["input_tables"] is None:
        mistakes.append("--where requires --input-tables DB")
    if _EVENT_TIME.search(values["where"] or "") and values.get("state") is None:
        meant = ", or name the earlier run that covers the beginning: --state RUN"
        mistakes.append(
            "--where on event_ms cuts off the history, so the state before it is unknown; omit "
            f"the condition{meant if 'state' in values else ''}"
        )
    if values["input_tables"] is not None and values["run_on"] == PROCESS:
        mistakes.append("Spark reads --input-tables; omit --run-on process")


def input_format_option() -> Any:
    """Declare ``--input-format``."""
    return option("FORMAT", FORMAT, read=file_format)


@dataclass(frozen=True, kw_only=True)
class RecordedOptions(RowOptions):
    """The options of a job that reads a recorded history: a folder, or a database."""

    input: str | None = option(
        "DIR",
        (
            "folder with the input tables, one file per table name; this or --input-tables is "
            "required"
        ),
    )
    input_format: str | None = input_format_option()
    input_tables: str | None = _input_tables()
    where: str | None = _where()
    output: str = option("DIR", OUTPUT, required=True)

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Check that there is one input."""
        inputs = [name for name in ("input", "input_tables") if values[name] is not None]
        if not inputs:
            mistakes.insert(0, "pass --input DIR or --input-tables DB")
        elif len(inputs) > 1:
            mistakes.append("--input and --input-tables exclude each other")
        _check_where(values, mistakes)


def group_option() -> Any:
    """Declare ``--group``, which restricts the output to some groups."""
    return option(
        "PATTERN",
        "only matching groups, by name or pattern with *; default: all",
        read=group_pattern,
    )


def _from_ms() -> Any:
    return option(
        "TIME",
        "only rows at or after this time; epoch milliseconds or RFC 3339; default: all",
        name="--from",
        read=instant,
    )


def _to_ms() -> Any:
    return option("TIME", "only rows before this time; default: all", name="--to", read=instant)


def refuse_empty_time(values: dict[str, Any], mistakes: list[str]) -> None:
    """Add a mistake if ``--to`` is not after ``--from``."""
    start, end = values["from_ms"], values["to_ms"]
    if start is not None and end is not None and end <= start:
        mistakes.append(f"--to {end} is not after --from {start}")


def ledger_tables(text: str) -> tuple[str, ...]:
    """Read names of ledger tables; raise ValueError for any others."""
    from rebalance_core.engine.options import SimulationOptions, chosen_tables

    names = tuple(name.strip() for name in text.split(",") if name.strip())
    try:
        chosen_tables(SimulationOptions(tables=names))
    except UsageError as error:
        raise ValueError(str(error).removeprefix("tables: ")) from error
    return names


TABLE_OPTIONS = ("events", "consumer_groups", "queue_offsets", "committed_offsets")
ENGINES = ("vectorized", "reference")


@dataclass(frozen=True, kw_only=True)
class SimulateOptions(RowOptions):
    """The options of `simulate`; None leaves the value to the settings or the engine."""

    DECIDING: ClassVar = ("strategy", "group", "from_ms", "to_ms")

    input: str | None = option(
        "DIR",
        "folder with the input tables, one file per table name; this, --events or --input-tables "
        "is required",
        group=EITHER,
    )
    events: str | None = option(
        "PATH", ("the table cluster_events; required without --input"), group=EITHER
    )
    consumer_groups: str | None = option(
        "PATH", "group settings; default: inferred from the events", group=EITHER
    )
    queue_offsets: str | None = option(
        "PATH", "queue end offsets over time; default: unknown", group=EITHER
    )
    committed_offsets: str | None = option(
        "PATH", "committed offsets over time; default: unknown", group=EITHER
    )
    input_format: str | None = option("FORMAT", FORMAT, read=file_format, group=EITHER)
    input_tables: str | None = _input_tables()
    where: str | None = _where()
    state: str | None = _state()
    output: str = option("DIR", "folder for the ledger, new or empty; required", required=True)
    engine: str = option(
        "ENGINE",
        "|".join(ENGINES) + "; default vectorized",
        default="vectorized",
        read=one_of(ENGINES),
    )
    strategy: str | None = option(
        "TEXT", "a strategy for all groups; default: each group's own", read=strategy_text
    )
    group: str | None = group_option()
    from_ms: int | None = _from_ms()
    to_ms: int | None = _to_ms()
    tables: tuple[str, ...] | None = option(
        "NAMES",
        "write only these tables (e.g. diffs,pull_starts) and rejected; default: all",
        read=ledger_tables,
    )

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Check that there is one input, and that the time range is not empty."""
        table_options = [name for name in TABLE_OPTIONS if values[name] is not None]
        if values["input"] is not None and table_options:
            names = ", ".join("--" + name.replace("_", "-") for name in table_options)
            mistakes.append(
                f"--input and {names} exclude each other, because the folder has all tables"
            )
        if values["input_tables"] is not None and (values["input"] is not None or table_options):
            mistakes.append("--input-tables excludes --input and single tables")
        elif values["input_tables"] is values["input"] is values["events"] is None:
            text = (
                "the input is missing: pass --input DIR, at least --events PATH, or "
                "--input-tables DB"
            )
            mistakes.insert(0, text)
        _check_where(values, mistakes)
        refuse_empty_time(values, mistakes)


def _of_range(name: str) -> Any:
    """Return a reader for a number in a fleet's plan."""

    def read(text: str) -> int:
        low, high = _range(name)
        value = number(text)
        if value is None:
            raise ValueError("expected a whole number")
        if not low <= value <= high:
            raise ValueError(f"not from {low} to {high}")
        return value

    return read


def _range(name: str) -> tuple[int, int]:
    from rebalance_core.synthetic.fleet import RANGES

    return RANGES[name]


@dataclass(frozen=True, kw_only=True)
class GenerateOptions(JobOptions):
    """The options of `generate`."""

    groups: int = option("N", "number of consumer groups; required", read=_of_range("groups"))
    days: int = option(
        "D", ("length of the history in days; default 1"), default=1, read=_of_range("days")
    )
    seed: int = option(
        "S",
        ("random seed; the same seed gives the same rows; default 0"),
        default=0,
        read=_of_range("seed"),
    )
    output: str = option("DIR", OUTPUT, required=True)

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Check that the number of groups is given."""
        if values["groups"] is None and not any(m.startswith("--groups") for m in mistakes):
            low, high = _range("groups")
            mistakes.insert(0, f"--groups is missing: pass a whole number from {low} to {high}")


COLLECTION = "folder with logs, stores and dumps, laid out as docs/ingest.md describes"


@dataclass(frozen=True, kw_only=True)
class IngestOptions(JobOptions):
    """The options of `ingest`."""

    collection: str = option("DIR", f"{COLLECTION}; required", required=True)
    output: str = option("DIR", OUTPUT, required=True)
    state: str | None = _state()


PROPAGATION, LOSSES = "propagation", "losses"
"""The tables of `propagate` and `plan` that an audit may read."""


def _severity(text: str) -> str:
    """Read a severity, case-insensitively."""
    if text.upper() not in SEVERITIES:
        hint = did_you_mean(text, SEVERITIES)
        raise ValueError(f"expected one of {', '.join(SEVERITIES)}{hint}")
    return text.upper()


def _propagated(text: str) -> str:
    """Read the output of `propagate`."""
    from rebalance_core.contracts.paths import is_local, local_path

    if is_local(text) and not (local_path(text) / PROPAGATION).is_dir():
        raise ValueError(
            f"there is no folder {PROPAGATION} in it; name the output of `rebalance propagate`"
        )
    return text


def _planned_losses(text: str) -> str:
    """Read the output of `plan`."""
    from rebalance_core.contracts.paths import is_local, local_path

    if is_local(text) and not (local_path(text) / LOSSES).is_dir():
        raise ValueError(
            f"there is no folder {LOSSES} in it; name the output of `rebalance plan` with a "
            "scenario that has each, e.g. lose-each-broker"
        )
    return text


TEXT, MARKDOWN = "text", "markdown"
"""The formats of an audit's summary."""


VERDICT = "the verdict"
"""Heading of the options of `JudgingOptions`."""


@dataclass(frozen=True, kw_only=True)
class JudgingOptions(RowOptions):
    """The options of a job that audits: when it fails, and which files it writes outside its
    folder.
    """

    fail_on: str = option(
        "SEVERITY",
        "exit 3 if a finding has at least this severity: ERROR, WARNING or INFO; default ERROR",
        default=ERROR,
        read=_severity,
        group=VERDICT,
    )
    fail_on_new: str | None = option(
        "SEVERITY",
        "exit 3 only for findings of at least this severity that are new or reopened since the "
        "previous run; an incomplete collection always exits 3; default: use --fail-on",
        read=_severity,
        group=VERDICT,
    )
    accepted: str | None = option(
        "FILE",
        ("file of accepted findings, each with a reason and an expiry; default: none"),
        group=VERDICT,
    )
    write_accepted: str | None = option(
        "FILE",
        "on the first run, write a file that accepts the current findings; default: none",
        group=VERDICT,
    )
    propagation: str | None = option(
        "DIR",
        "output of `rebalance propagate`, used to judge how late an unsettled group is; default: "
        "none",
        read=_propagated,
        group=VERDICT,
    )
    losses: str | None = option(
        "DIR",
        "output of `rebalance plan` with a scenario of single losses, for the page; default: none",
        read=_planned_losses,
        group=VERDICT,
    )
    redact_clients: bool = flag(
        "leave client ids and addresses out of the output; default: show them", group=VERDICT
    )
    junit: str | None = option(
        "FILE",
        "also write JUnit XML with a test per group, for a change gate; default: none",
        group=VERDICT,
    )
    sarif: str | None = option(
        "FILE",
        "also write the findings as SARIF 2.1.0, for a change gate; default: none",
        group=VERDICT,
    )
    format: str = option(
        "FORMAT",
        "format of the summary on stdout: text, or markdown to paste into a ticket; default: text",
        default=TEXT,
        read=one_of((TEXT, MARKDOWN)),
        group=VERDICT,
    )

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Check that no two options name the same file, and that there is only one summary."""
        if values["json"] and values["format"] != TEXT:
            mistakes.append("--json and --format exclude each other")
        if values["junit"] is not None and values["junit"] == values["sarif"]:
            mistakes.append("--junit and --sarif name the same file; write to another file")
        if values["accepted"] and values["accepted"] == values["write_accepted"]:
            mistakes.append(
                "--accepted and --write-accepted name the same file; write to another file"
            )


def _since() -> Any:
    return option(
        "TIME",
        "start of the night; findings that ended earlier are INFO; epoch milliseconds or RFC "
        "3339; default: the end of the previous run or of the state, or else 24 hours before the "
        "end",
        name="--since",
        read=instant,
    )


@dataclass(frozen=True, kw_only=True)
class AuditOptions(JudgingOptions):
    """The options of `audit`."""

    DECIDING: ClassVar = ("redact_clients", "group", "from_ms", "to_ms")

    collection: str | None = option("DIR", f"{COLLECTION}; this or --input is required")
    input: str | None = option(
        "DIR", "folder with the tables of an earlier ingest; required without --collection"
    )
    output: str = option(
        "DIR", "folder for the ledger, findings and page, new or empty; required", required=True
    )
    previous: str | None = option(
        "DIR", "output of the previous run to compare with; default: none"
    )
    state: str | None = _state()
    since_ms: int | None = _since()
    group: str | None = group_option()
    from_ms: int | None = _from_ms()
    to_ms: int | None = _to_ms()

    @property
    def gate_files(self) -> tuple[str, ...]:
        """Return the files to write next to the output folder."""
        return tuple(filter(None, (self.junit, self.sarif)))

    @property
    def only(self) -> dict[str, Any]:
        """Return the restrictions of the output, by option."""
        restrictions = {"--group": self.group, "--from": self.from_ms, "--to": self.to_ms}
        return {name: value for name, value in restrictions.items() if value is not None}

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Check that there is one input, and that no acceptances are overwritten."""
        parts = [values[name] for name in ("group", "from_ms", "to_ms")]
        if values["previous"] and any(part is not None for part in parts):
            mistakes.append(
                "--previous compares complete audits; omit it with --group, --from and --to"
            )
        refuse_empty_time(values, mistakes)
        wrong_collection = any(m.startswith("--collection") for m in mistakes)
        if not wrong_collection and bool(values["collection"]) == bool(values["input"]):
            mistakes.append("pass either --collection DIR or --input DIR")
        if values["state"] is not None and values["input"] is not None:
            mistakes.append(
                "--state requires --collection; pass it to the ingest that writes --input"
            )
        if values["fail_on_new"] is not None and values["previous"] is None:
            mistakes.append("--fail-on-new requires --previous DIR")
        super().complete(values, mistakes)


def _prefix(text: str) -> str:
    """Read the prefix of table names."""
    if not re.fullmatch(r"\w+", text, re.ASCII):
        raise ValueError("letters, digits and _ only, e.g. ledger_")
    return text


def _kept_days(text: str) -> int:
    """Read days, with or without their unit."""
    return whole(1, 10_000, "of days, from 1 to 10,000, e.g. 35d")(text.removesuffix("d"))


def _run_id(text: str) -> str:
    """Read the id of a run."""
    if not re.fullmatch(r"[0-9a-f]{1,64}", text):
        raise ValueError("the run_id of a run, hexadecimal, as the table runs has it")
    return text


@dataclass(frozen=True, kw_only=True)
class PublishOptions(JobOptions):
    """The options of `publish`."""

    MEANINGLESS: ClassVar = ("overwrite", "break_lock", "run_on")

    run: str | None = option(
        "DIR", "output folder of a finished job; required, unless --remove is given"
    )
    to: str = option(
        "DB",
        "target database: CATALOG.DATABASE, or DATABASE in Spark's own catalog; required",
        required=True,
        read=database_name,
    )
    prefix: str = option(
        "TEXT",
        "prefix of the table names, e.g. ledger_; default: none",
        default="",
        read=_prefix,
    )
    replace: str = option(
        "WHAT",
        "period replaces the runs of the same job, clusters and night; run replaces only this run; "
        "default period",
        default="period",
        read=one_of(("period", "run")),
    )
    keep: int | None = option(
        "DAYS",
        "remove runs of the same job and clusters that are this many nights older, e.g. 35d; "
        "default: none",
        read=_kept_days,
    )
    remove: str | None = option(
        "RUN",
        "remove the run with this run_id and publish nothing; default: remove nothing",
        read=_run_id,
    )

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Check that there is exactly one thing to do, and that it runs on Spark, which owns the
        catalog's tables.
        """
        if values["run_on"] == PROCESS:
            mistakes.append("publish writes tables of Spark's catalogs; leave out --run-on process")
        if values["run"] is None and values["remove"] is None:
            mistakes.append("--run DIR is missing")
        if values["run"] is not None and values["remove"] is not None:
            mistakes.append("--remove publishes nothing: leave out --run")
        if values["remove"] is not None and values["keep"] is not None:
            mistakes.append("--remove removes one run: leave out --keep")


def owners_option() -> Any:
    """Declare ``--owners``."""
    return option("FILE", "TOML file that maps groups to the teams to notify; default: no teams")


def deliver_flag() -> Any:
    """Declare ``--deliver``."""
    return flag(
        "send new, reopened and healed findings to the webhooks in --owners; with --dry-run, "
        "print the bodies instead; default: send nothing"
    )


def _check_deliver(values: dict[str, Any], mistakes: list[str]) -> None:
    if values["deliver"] and values["owners"] is None:
        mistakes.append("--deliver requires --owners, the file that defines the channels")


@dataclass(frozen=True, kw_only=True)
class HistoryOptions(JobOptions):
    """The options of `history`."""

    runs: str = option(
        "DIR",
        "folder that contains the outputs of `audit`, or that of `rebalance night`; required",
        required=True,
    )
    output: str = option("DIR", OUTPUT, required=True)
    owners: str | None = owners_option()
    deliver: bool = deliver_flag()

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Check that ``--deliver`` comes with channels."""
        _check_deliver(values, mistakes)
        super().complete(values, mistakes)


def _ledger(text: str) -> str:
    """Read the location of tables that this process can reach."""
    from rebalance_core.storage.place import place_of

    try:
        place_of(text)
    except UsageError as error:
        reason = str(error).removeprefix(f"{text}: ")
        raise ValueError(f"{reason}; copy it first") from error
    return text


def _queue(text: str) -> MessageQueue:
    """Read a queue or a whole broker.

    >>> _queue("orders/broker-a/3").queue_id
    3
    """
    from rebalance_core.strategies.pop import WHOLE_BROKER

    topic, slash, rest = text.partition("/")
    broker, second, digits = rest.rpartition("/")
    plain = digits.isdecimal() and digits.isascii() and len(digits) <= MOST_DIGITS
    if not (slash and second and topic and broker and (plain or digits == str(WHOLE_BROKER))):
        raise ValueError("not TOPIC/BROKER/ID, e.g. orders/broker-a/3")
    return MessageQueue(topic, broker, int(digits))


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(JobOptions):
    """The options of `explain`."""

    MEANINGLESS: ClassVar = (
        "config",
        "set",
        "allow_plugins",
        "overwrite",
        "break_lock",
        "master",
        "run_on",
    )

    ledger: str = option(
        "DIR", "output folder of simulate or audit; required", required=True, read=_ledger
    )
    group: str | None = option("G", "the consumer group; required unless --client is given")
    queue: MessageQueue | None = option(  # noqa: RUF009  # a field, made once
        "T/BROKER/ID",
        "the queue, e.g. orders/broker-a/3; for a shared topic, -1 means the whole broker; "
        "required unless --client is given",
        read=_queue,
    )
    client: str | None = option(
        "C",
        "instead of a queue, explain this client's pass step by step in each of its groups; "
        "default: none",
    )
    at_ms: int = option(
        "TIME",
        "epoch milliseconds or RFC 3339; required",
        name="--at",
        required=True,
        read=instant,
    )
    cluster: str | None = option(
        "C", "cluster, if several have a group with that name; default: the only cluster"
    )

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Check that a queue, with its group, or a client is named."""
        wrong_queue = any(m.startswith("--queue") for m in mistakes)
        if not wrong_queue and (values["queue"] is None) == (values["client"] is None):
            mistakes.append("pass either --queue T/BROKER/ID or --client C")
        if values["group"] is None and values["client"] is None:
            mistakes.append("--group G, the consumer group, is missing")


@dataclass(frozen=True, kw_only=True)
class ReadOptions(JobOptions):
    """The options of `read`."""

    MEANINGLESS: ClassVar = ("allow_plugins", "overwrite", "break_lock", "master", "run_on")

    files: tuple[str, ...] = option(
        "FILE",
        "files to read, each on its own: answers from mqadmin or the dashboard, stores and logs; "
        "- is standard input; required",
        name="files",
        many="append",
        required=True,
    )
    group: str | None = option(
        "G",
        (
            "the consumer group, if neither the file nor its name shows it; default: taken from "
            "the file"
        ),
    )


def _days() -> Any:
    """Return a reader for days."""
    return whole(1, 10_000, "from 1 to 10,000")


@dataclass(frozen=True, kw_only=True)
class DemoOptions(JobOptions):
    """The options of `demo`."""

    MEANINGLESS: ClassVar = ("break_lock", "master", "run_on")

    folder: str = option(
        "DIR",
        "folder for the recording and its audit; default rebalance-demo",
        default="rebalance-demo",
        name="folder",
    )


COLLECTING = "collecting"
"""Heading of the options of `CollectingOptions`."""


@dataclass(frozen=True, kw_only=True)
class CollectingOptions(JobOptions):
    """The options of a job that collects, which are those of the collecting script."""

    sources: str | None = option(
        "FILE",
        "machines and folders to copy from (docs/collect-kubernetes.md); default: none, only "
        "query the cluster",
        group=COLLECTING,
    )
    cluster: str = option(
        "NAME",
        "the RocketMQ cluster; default DefaultCluster",
        default="DefaultCluster",
        group=COLLECTING,
    )
    name_server: str | None = option(
        "ADDRESSES",
        "name servers to query; default: NAMESRV_ADDR from the environment",
        group=COLLECTING,
    )
    admin_time_zone: str | None = option(
        "ZONE",
        "time zone of the admin commands' output; default: this machine's",
        group=COLLECTING,
    )
    threads: int = option(
        "N",
        "concurrent queries to the cluster; default 4",
        default=4,
        read=whole(1, 99, "from 1 to 99"),
        group=COLLECTING,
    )
    days: int | None = option(
        "N", "only logs written in the last N days; default: all", read=_days(), group=COLLECTING
    )
    no_admin: bool = flag("only copy files; default: also query the cluster", group=COLLECTING)

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Check that there is something to collect."""
        if values["sources"] is None and values["no_admin"]:
            mistakes.append(
                "--no-admin requires --sources FILE: without it there is nothing to collect"
            )
        super().complete(values, mistakes)


@dataclass(frozen=True, kw_only=True)
class CollectOptions(CollectingOptions):
    """The options of `collect`."""

    MEANINGLESS: ClassVar = (
        "config",
        "set",
        "allow_plugins",
        "break_lock",
        "master",
        "run_on",
    )

    init: bool = flag(
        "only write a commented collection.toml into --output, or with --name-server a "
        "sources.txt that lists the cluster's servers; default: collect"
    )
    output: str = option(
        "DIR", "folder for the collection, new or empty; default: the current folder", default="."
    )
    redact: str | None = option(
        "KEYFILE",
        "rename addresses, hosts, client ids and users, keep their order, and write the key that "
        "maps the names to this new file outside --output; default: keep the names",
    )
    input: str | None = option(
        "DIR", "with --redact, the collection to redact; default: collect one now"
    )
    state: str | None = option(
        "RUN",
        "copy logs from where this earlier run of ingest or audit ended, to pass with --state; "
        "default: copy whole logs",
    )

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Check the combinations of options for collecting."""
        if values["input"] is not None and values["redact"] is None:
            mistakes.append("--input requires --redact KEYFILE: it names a collection to redact")
        if values["state"] is not None and values["redact"] is not None:
            mistakes.append(
                "--redact renames members, so it cannot continue an earlier run; omit --state"
            )
        if values["init"] and values["redact"] is not None:
            mistakes.append("--init collects nothing to redact; omit --redact")
        if not values["init"]:
            super().complete(values, mistakes)


@dataclass(frozen=True, kw_only=True)
class NightOptions(CollectingOptions, JudgingOptions):
    """The options of `night`: those of the collector and the audit, and how long nights are
    kept.
    """

    MEANINGLESS: ClassVar = ("overwrite", "break_lock")

    runs: str = option(
        "DIR",
        "folder of all nights and their history; required",
        required=True,
        read=mounted_folder,
    )
    collection: str | None = option(
        "DIR",
        "instead of collecting, audit this folder that another tool collected for the night; "
        "default: collect",
        read=mounted_folder,
    )
    since_ms: int | None = _since()
    owners: str | None = owners_option()
    deliver: bool = deliver_flag()
    textfiles: str | None = option(
        "DIR",
        "folder of node_exporter's textfile collector, where the audit and history metrics are "
        "written; default: none",
    )
    keep: int = option(
        "DAYS", ("remove nights that are older than N days; default 35"), default=35, read=_days()
    )
    keep_collections: int = option(
        "DAYS",
        ("remove the collections of nights that are older than N days; default 7"),
        default=7,
        read=_days(),
    )

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Check that there is a single source to audit."""
        if values["collection"] is not None and values["sources"] is not None:
            mistakes.append(
                "--sources and --collection exclude each other: a night audits one collection"
            )
        _check_deliver(values, mistakes)
        super().complete(values, mistakes)
