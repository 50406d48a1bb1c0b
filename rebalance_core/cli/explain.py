"""The `explain` job: read a group's rows around an instant, derive the owner again and explain the
result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from rebalance_core.cli.explain_text import render_explanation
from rebalance_core.cli.job_options import ExplainOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.options import SPARK
from rebalance_core.cli.run.output_folder import typed_place
from rebalance_core.cli.settings import settings_of
from rebalance_core.cli.terminal import joined, warn
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.contracts.ledger import FINDINGS
from rebalance_core.contracts.opening_state import EVIDENCE, EVIDENCE_FILES
from rebalance_core.contracts.progress import QUEUE_PROGRESS
from rebalance_core.contracts.run_names import STATE
from rebalance_core.explain.answer import Explanation
from rebalance_core.explain.client_pass import client_pass
from rebalance_core.explain.explainer import Explainer, queue_text
from rebalance_core.explain.view import GroupRows, refuse_unknown
from rebalance_core.ingest.shown_earlier import (
    KINDS,
    earlier_texts,
    earlier_until,
    shown_earlier,
)
from rebalance_core.model.errors import InputRefused, UsageError, did_you_mean
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import MINUTE_MS, utc
from rebalance_core.storage.place import place_of
from rebalance_core.storage.run_folder import counted_rows, read_run
from rebalance_core.strategies.pop import WHOLE_BROKER

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        ConsumerLoadRow,
        EpochsRow,
        PopMetricsRow,
        QueueProgressRow,
    )

QUEUE_COLUMNS = MessageQueue._fields
TABLES = (*LEDGER_TABLES, FINDINGS.name, QUEUE_PROGRESS.name)
"""The tables read from the folder."""
ASSUMED, NOT_READ = "INGEST_ASSUMED", "QUEUES_NOT_READ"
_DOUBTS = (
    ASSUMED,
    "INGEST_LITE_TOPIC",
    "INGEST_STRATEGY_INFERRED",
    "INGEST_STRATEGY_UNKNOWN",
    NOT_READ,
)


class LedgerFolder:
    """A folder with the tables of `simulate`.

    Raises:
        InputRefused: the folder has no result, a result of another version, no ledger, or tables
            that differ from the record.
    """

    def __init__(self, location: str) -> None:
        self._place = place_of(location)
        folder = typed_place(location)
        self._record = read_run(folder)
        counted_rows(folder, self._record, TABLES)

    def has(self, table: str) -> bool:
        """Return True if the ledger has the table."""
        return bool((self._place / table).is_folder())

    def rows(self, table: str, condition: ds.Expression | None, *columns: str) -> list[Any]:
        """Return the rows of a table that satisfy the condition, with all columns unless some are
        named.
        """
        place = self._place / table
        try:
            if not place.is_folder():
                raise InputRefused(
                    f"{self._place} has no table {table}: it is not a ledger written by simulate, "
                    "or --tables left the table out"
                )
            dataset = ds.dataset(place.path, filesystem=place.file_system, format="parquet")
            read = dataset.to_table(list(columns) or None, condition)
        except (pa.ArrowException, OSError) as error:
            raise InputRefused(f"{place} cannot be read: {error}") from error
        rows: list[Any] = read.to_pylist()
        return rows

    def cluster_of(self, group: str, cluster: str | None) -> str:
        """Return the cluster that has the group.

        Raises:
            UsageError: no cluster has the group, or several have it and none is named.
        """
        names = ("cluster", "consumer_group")
        epochs = self.rows("epochs", ds.field("consumer_group") == group, *names)
        clusters: list[str] = sorted({row["cluster"] for row in epochs})
        if cluster is not None and cluster in clusters:
            return cluster
        if not clusters:
            groups = {row["consumer_group"] for row in self.rows("epochs", None, *names)}
            raise UsageError(
                f"--group {group}: the ledger has no such group{did_you_mean(group, groups)} "
                f"({len(groups):,} groups)"
            )
        listed = ", ".join(clusters)
        if cluster is not None:
            hint = did_you_mean(cluster, clusters)
            raise UsageError(f"--cluster {cluster}: {group} is in {listed}{hint}")
        if len(clusters) > 1:
            raise UsageError(
                f"--group {group} is in {len(clusters)} clusters: choose with --cluster {listed}"
            )
        return clusters[0]

    def around(self, cluster: str, group: str, queue: MessageQueue, at_ms: int) -> GroupRows:
        """Read the rows of a queue in the epoch at that instant and in about two epochs before.

        Raises:
            UsageError: the instant is outside the group's ledger, or the queue has no row at that
                time.
        """
        of_group = _of_group(cluster, group)
        epochs = sorted(self.rows("epochs", of_group), key=lambda row: row["epoch"])
        epoch = _epoch_at(epochs, at_ms, group)
        metrics = self.rows("pop_metrics", of_group)
        # the rows of one epoch do not show what members popped earlier, so all are read
        popped = any(row["topic"] == queue.topic and row["epoch"] < epoch for row in metrics)
        first = 0 if popped else epoch - 2
        covers = (ds.field("from_epoch") <= epoch) & (
            ds.field("to_epoch").is_null() | (ds.field("to_epoch") > first)
        )
        of_queue = of_group
        for column, value in zip(QUEUE_COLUMNS, queue, strict=True):
            of_queue = of_queue & (ds.field(column) == value)
        until = ds.field("epoch") <= epoch
        added = of_queue & until & (ds.field("action") == "ADD")
        rows = self._group_rows(
            epochs,
            metrics,
            of_group & covers,
            diffs=added | (of_group & (ds.field("epoch") == epoch)),
            starts=of_queue & until,
            pop_starts=of_queue & until,
            figures=of_group & until & (ds.field("epoch") >= first),
        )
        shared = {row["topic"] for row in metrics if row["epoch"] == epoch}
        held = any(_is_at(row, queue, epoch) for row in rows.ownership)
        if queue.topic not in shared and not held:
            # the client may hold the queue although it has no row
            refuse_unknown(rows.memberships, queue, rows.memberships)
            raise UsageError(self._no_queue(of_group, of_queue, queue, at_ms, group))
        return rows

    def _group_rows(
        self,
        epochs: Sequence[EpochsRow],
        pop_metrics: Sequence[PopMetricsRow],
        covers: ds.Expression,
        *,
        diffs: ds.Expression,
        starts: ds.Expression,
        figures: ds.Expression,
        pop_starts: ds.Expression | None = None,
    ) -> GroupRows:
        """Read the rows of a group; ``covers`` selects intervals, and ``pop_starts`` is None if not
        needed.
        """
        pops = pop_starts is not None and self.has("pop_starts")
        return GroupRows(
            epochs=epochs,
            ownership=self.rows("ownership", covers),
            memberships=self.rows("memberships", covers),
            diffs=self.rows("diffs", diffs),
            pull_starts=self.rows("pull_starts", starts),
            pop_reach=self.rows("pop_reach", covers),
            pop_metrics=pop_metrics,
            group_metrics=self.rows("group_metrics", figures),
            queue_states=self.rows("queue_states", covers),
            pop_starts=self.rows("pop_starts", pop_starts) if pops else (),
        )

    def groups_of(
        self, client_id: str, group: str | None, cluster: str | None
    ) -> list[tuple[str, str]]:
        """Return each (cluster, group) of which the client was a member at any time.

        Raises:
            UsageError: there is no such group.
        """
        names = ("cluster", "consumer_group", "client_id")
        rows = self.rows("memberships", ds.field("client_id") == client_id, *names)
        groups = {
            (row["cluster"], row["consumer_group"])
            for row in rows
            if group in (None, row["consumer_group"]) and cluster in (None, row["cluster"])
        }
        if not groups:
            clients = {row["client_id"] for row in self.rows("memberships", None, *names)}
            raise UsageError(
                f"--client {client_id}: the ledger has no such member"
                f"{did_you_mean(client_id, clients)} ({len(clients):,} clients)"
            )
        return sorted(groups)

    def was_member(self, cluster: str, group: str, client_id: str, at_ms: int) -> bool:
        """Return True if the client was in the group at that time."""
        rows_of = _of_group(cluster, group) & (ds.field("client_id") == client_id)
        rows_of = rows_of & (ds.field("from_ms") <= at_ms)
        ends = ds.field("to_ms").is_null() | (ds.field("to_ms") > at_ms)
        return bool(self.rows("memberships", rows_of & ends, "client_id"))

    def of_client(
        self, cluster: str, group: str, client_id: str, at_ms: int
    ) -> tuple[GroupRows, list[ConsumerLoadRow]]:
        """Read the rows of a group around the epoch of that instant, and the client's loads."""
        of_group = _of_group(cluster, group)
        epochs = sorted(self.rows("epochs", of_group), key=lambda row: row["epoch"])
        epoch = _epoch_at(epochs, at_ms, group)
        covers = of_group & (ds.field("from_epoch") <= epoch)
        covers = covers & (ds.field("to_epoch").is_null() | (ds.field("to_epoch") > epoch - 2))
        of_client = of_group & (ds.field("client_id") == client_id)
        of_epoch = ds.field("epoch") == epoch
        metrics = self.rows("pop_metrics", of_group)
        starts, figures = of_client & of_epoch, of_group & of_epoch
        rows = self._group_rows(
            epochs, metrics, covers, diffs=figures, starts=starts, figures=figures
        )
        return rows, self.rows("consumer_load", of_client)

    def doubts(self, cluster: str, group: str, queue: MessageQueue, at_ms: int) -> tuple[str, ...]:
        """Return the findings of an audit that cast doubt on an explanation; empty for a ledger of
        `simulate`.

        Examples: no file names the strategy, or a dump shows the queue without a client.
        """
        of_group = _of_group(cluster, group)
        if not self.has(FINDINGS.name):
            return ()
        findings = self.rows(FINDINGS.name, of_group & ds.field("rule_id").isin(_DOUBTS))
        return tuple(
            row["summary"]
            for row in findings
            if row["topic"] in (None, queue.topic)
            and (row["rule_id"] != ASSUMED or any(_is_strategy(k) for k, _ in row["evidence"]))
            and (row["rule_id"] != NOT_READ or row["first_ms"] <= at_ms + MINUTE_MS)
        )

    def shown_earlier(self, group: str, clients: Collection[str]) -> list[str]:
        """Return, in words, what only earlier nights show about these clients; empty for a ledger
        that begins without an opening state.
        """
        audit = self._record.get("audit")
        night_ms = audit and audit.get("night_ms")
        states = [one["path"] for one in self._record.get("inputs", ()) if one["table"] == STATE]
        if night_ms is None or not states:
            return []
        of_group = (ds.field("part") == GROUP) & (ds.field("key") == group)
        rows = self.rows(f"{STATE}/{EVIDENCE.name}", of_group & ds.field("kind").isin(KINDS))
        own = {file["name"] for file in self._record.get("files", ())}
        files = self.rows(f"{STATE}/{EVIDENCE_FILES.name}", None)
        until = earlier_until(own, files, _files_of(states[0]))
        return earlier_texts(shown_earlier(rows, clients, until), night_ms)

    def progress(self, cluster: str, group: str, queue: MessageQueue) -> QueueProgressRow | None:
        """Return how far the group has read the queue, or None in a ledger of `simulate`."""
        if not self.has(QUEUE_PROGRESS.name):
            return None
        of_queue = _of_group(cluster, group)
        for column, value in zip(QUEUE_COLUMNS, queue, strict=True):
            of_queue = of_queue & (ds.field(column) == value)
        return next(iter(self.rows(QUEUE_PROGRESS.name, of_queue)), None)

    def _no_queue(
        self,
        of_group: ds.Expression,
        of_queue: ds.Expression,
        queue: MessageQueue,
        at_ms: int,
        group: str,
    ) -> str:
        """Explain why a queue has no row at the time."""
        text = "/".join(map(str, queue))
        if queue.queue_id == WHOLE_BROKER:
            return (
                f"--queue {text}: no member shares {queue.topic} at {utc(at_ms)}, and -1 (the "
                "whole broker) is valid for shared topics only; name a single queue"
            )
        whole = (
            of_group & (ds.field("topic") == queue.topic) & (ds.field("queue_id") == WHOLE_BROKER)
        )
        of_broker = whole & (ds.field("broker_name") == queue.broker_name)
        times = ("from_ms", "to_ms")
        lives = self.rows("ownership", of_queue, *times)
        lives += self.rows("pop_reach", of_queue | of_broker, *times)
        if lives:
            ends = [row["to_ms"] for row in lives]
            end = "now" if None in ends else utc(max(ends))
            start = utc(min(row["from_ms"] for row in lives))
            return (
                f"--queue {text}: {group} cannot read it at {utc(at_ms)}; the ledger has it at "
                f"some times between {start} and {end}"
            )
        rows = self.rows("ownership", of_group, *QUEUE_COLUMNS)
        rows += self.rows("pop_reach", of_group, *QUEUE_COLUMNS)
        queues = {"/".join(str(row[column]) for column in QUEUE_COLUMNS) for row in rows}
        return (
            f"--queue {text}: {group} never had such a queue{did_you_mean(text, queues)} "
            f"({len(queues):,} queues)"
        )


def _files_of(run: str) -> list[Any]:
    """Return the files of an earlier run's opening state; empty if it was removed."""
    try:
        return LedgerFolder(run).rows(f"{STATE}/{EVIDENCE_FILES.name}", None)
    except InputRefused:
        return []


def _of_group(cluster: str, group: str) -> ds.Expression:
    return (ds.field("cluster") == cluster) & (ds.field("consumer_group") == group)


def _epoch_at(epochs: Sequence[EpochsRow], at_ms: int, group: str) -> int:
    for row in epochs:
        if row["from_ms"] <= at_ms and (row["to_ms"] is None or at_ms < row["to_ms"]):
            return int(row["epoch"])
    first, last = epochs[0]["from_ms"], epochs[-1]["to_ms"]
    raise UsageError(
        f"--at {utc(at_ms)} ({at_ms}) is outside the ledger of {group}: from {utc(first)} "
        f"({first}) to {'now' if last is None else f'{utc(last)} ({last})'}"
    )


def _is_strategy(assumed: str) -> bool:
    """Return True if the assumption concerns only a strategy or its parameters."""
    return assumed.startswith(("strategy", "parameters of "))


def _is_at(row: Mapping[str, Any], queue: MessageQueue, epoch: int) -> bool:
    in_time = row["from_epoch"] <= epoch and (row["to_epoch"] is None or epoch < row["to_epoch"])
    return in_time and tuple(row[column] for column in QUEUE_COLUMNS) == queue


def run(options: ExplainOptions) -> JobReport:
    """Run the job and return the report for stdout. Needs pyarrow and no Spark."""
    if options.config or options.set:
        settings_of(options)  # refuses invalid settings, like every job
    if options.run_on == SPARK:
        warn(
            "explain reads the rows of a single group and runs in this process wherever other "
            "jobs run"
        )
    ledger = LedgerFolder(options.ledger)
    if options.client is not None:
        return _run_client(ledger, options, options.client)
    assert options.group is not None
    assert options.queue is not None
    cluster = ledger.cluster_of(options.group, options.cluster)
    rows = ledger.around(cluster, options.group, options.queue, options.at_ms)
    try:
        explanation = Explainer(rows).explain(options.queue, options.at_ms)
    except KeyError:
        raise UsageError(
            f"--queue {queue_text(options.queue)}: {options.group} cannot read it at "
            f"{utc(options.at_ms)}; members share the topic at that time"
        ) from None
    doubts = ledger.doubts(cluster, options.group, options.queue, options.at_ms)
    earlier = ledger.shown_earlier(options.group, _clients(explanation))
    explanation = replace(
        explanation,
        notes=(*explanation.notes, *doubts, *earlier),
        progress=ledger.progress(cluster, options.group, options.queue),
    )
    if options.dry_run:
        text = f"would explain {queue_text(options.queue)} of {options.group} in {cluster}"
        facts = {"job": "explain", "dry_run": True, "exit_code": 0, "cluster": cluster}
        return JobReport(joined([text]), facts)
    return JobReport(render_explanation(explanation), explain_facts(explanation))


def _clients(explanation: Explanation) -> set[str]:
    """Return the clients that hold the queue or may take from it, or all members if there are
    none.
    """
    if explanation.sharing is not None:
        return {taker.client_id for taker in explanation.sharing.takers}
    return {holder.client_id for holder in explanation.holders} or set(explanation.after.cid_all)


def _run_client(ledger: LedgerFolder, options: ExplainOptions, client_id: str) -> JobReport:
    """Return the client's pass in each of its groups."""
    groups = ledger.groups_of(client_id, options.group, options.cluster)
    passes = [
        client_pass(*ledger.of_client(*group, client_id, options.at_ms), client_id, options.at_ms)
        for group in groups
        if len(groups) == 1 or ledger.was_member(*group, client_id, options.at_ms)
    ]
    if not passes:
        raise UsageError(
            f"--client {client_id} is not a member of any group at {utc(options.at_ms)}"
        )
    text = joined([line for played in passes for line in (*played.lines(), "")][:-1])
    facts = {"job": "explain", "status": "OK", "exit_code": 0, "client_id": client_id}
    return JobReport(text, facts | {"passes": [played.facts() for played in passes]})


def explain_facts(explanation: Explanation) -> dict[str, Any]:
    """Return the `--json` object with every field of the explanation and full lists."""
    facts = asdict(explanation)
    facts["queue"] = explanation.queue._asdict()
    return {"job": "explain", "status": "OK", "exit_code": 0} | facts
