"""The jobs as functions for notebooks: they take tables or a folder, and return results that
display themselves.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import replace
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from rebalance_core.checks.input_tables import input_tables_of, read_input_tables
from rebalance_core.checks.opening_state import state_folder, with_state
from rebalance_core.cli.explain import LedgerFolder
from rebalance_core.cli.explain_text import render_explanation
from rebalance_core.cli.job_options import ExplainOptions
from rebalance_core.cli.jobs import JOBS, JobReport, parse_options
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.run_names import INGESTED, STATE
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.explain.answer import Explanation
from rebalance_core.explain.explainer import Explainer
from rebalance_core.model.errors import InputRefused, UsageError, did_you_mean
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.what_if.planned_group import check_queue_numbers
from rebalance_core.process import simulate as simulation
from rebalance_core.storage.place import place_of
from rebalance_core.strategies.custom import name_of
from rebalance_core.strategies.texts import strategy_text

if TYPE_CHECKING:
    import pandas as pd

SHOWN_ROWS = 10
"""Maximum number of rows of a table that a notebook shows."""
SKETCHED_MS = 1_767_225_600_000
"""The start time of a sketch, chosen arbitrarily: 2026-01-01T00:00:00Z."""
FORMS = "a folder, or a dict from table names to Arrow tables, pandas frames or lists of dicts"


_OF_THE_RUN = re.compile(r"; page in .*")
"""The part of the output that depends on a temporary page and the duration."""


class Tables(Mapping[str, pa.Table]):
    """Arrow tables by name, also available as attributes, with a rich display in notebooks.

    Args:
        tables: the tables, by name.
        title: a short description.
    """

    def __init__(self, tables: Mapping[str, pa.Table], title: str = "Tables") -> None:
        self._tables, self._title = dict(tables), title

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._tables:
            raise KeyError(f"no table {name!r}{did_you_mean(name, self._tables)}")
        return self._tables[name]

    def __getattr__(self, name: str) -> pa.Table:
        if name.startswith("_") or name not in self._tables:
            raise AttributeError(f"no table {name!r}{did_you_mean(name, self.__dict__['_tables'])}")
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        rows = ", ".join(f"{name} {len(table):,}" for name, table in self._tables.items())
        return f"<{self._title}: {rows or 'empty'}>"

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{escape(self._title)}</b></p>"]
        for name, table in self._tables.items():
            if len(table):
                parts.append(f"<details><summary>{escape(name)}: {len(table):,} rows</summary>")
                parts.append(_html_table(table.slice(0, SHOWN_ROWS)) + "</details>")
        return "".join(parts)

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """Return the tables as pandas frames."""
        return {name: table.to_pandas() for name, table in self._tables.items()}


class Audit(Tables):
    """The result of an audit: ``findings``, ``group_verdicts``, ``coverage`` and the ledger.

    Attributes:
        text: the job's output.
        facts: the `--json` object.
        page: the report as an HTML document.
    """

    def __init__(self, tables: Mapping[str, pa.Table], report: JobReport, page: str) -> None:
        facts = {k: v for k, v in report.facts.items() if k not in ("output", "seconds")}
        super().__init__(tables, f"Audit of {', '.join(facts['clusters'])}: {facts['verdict']}")
        self.text, self.facts, self.page = _OF_THE_RUN.sub("", report.text), facts, page

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


class Answer:
    """An explanation of why a client owns a queue; ``str()`` is the output of `rebalance
    explain`.
    """

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    def __str__(self) -> str:
        return render_explanation(self.explanation)

    def __repr__(self) -> str:
        return f"<Answer: {str(self).splitlines()[0]}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _html_table(table: pa.Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    rows = (
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row.values()) + "</tr>"
        for row in table.to_pylist()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(value: object) -> str:
    return "" if value is None else escape(str(value))


def read_tables(source: Any) -> Tables:
    """Return the input tables in a folder or a mapping, after checking their columns.

    Args:
        source: a folder with the tables by name (JSON lines, CSV, Parquet), or a mapping of names
            to Arrow tables, pandas frames or lists of dicts.

    Raises:
        UsageError: the source is something else, or a name is not that of a table.
        InputRefused: the folder has no tables, or a table lacks columns.
    """
    if isinstance(source, str | Path):
        return Tables(read_input_tables(str(source)).tables, f"Tables of {source}")
    if isinstance(source, Tables):
        return source
    if not isinstance(source, Mapping):
        raise UsageError(f"{type(source).__name__} is not an input; pass {FORMS}")
    unknown = [name for name in source if name not in INPUT_TABLES]
    if unknown:
        valid = ", ".join(INPUT_TABLES)
        raise UsageError(
            "no input table has the name "
            f"{unknown[0]!r}{did_you_mean(str(unknown[0]), INPUT_TABLES)} (tables: {valid})"
        )
    tables = {name: _arrow(name, rows) for name, rows in source.items()}
    return Tables(input_tables_of(tables).tables, "Tables")


def _arrow(name: str, rows: Any) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows
    if hasattr(rows, "iloc"):  # a pandas frame
        return pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(
            name for row in rows for name in row
        )  # pyarrow infers columns from the first row only
        return pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    raise UsageError(f"{name} is a {type(rows).__name__}; pass {FORMS}")


def sketch(
    topics: Mapping[str, Mapping[str, int]],
    members: int | Sequence[str],
    strategy: Any = "AVG",
    *,
    group: str = "group",
    cluster: str = "cluster",
) -> Tables:
    """Return the input tables of a sketched group, all of whose parts are older than the log.

    Args:
        topics: topic -> broker -> number of queues.
        members: the number of consumers, or their client ids.
        strategy: the strategy's text.
        group: the group's name.
        cluster: the cluster's name.

    Raises:
        UsageError: numbers of queues are invalid (the message lists all), or there is no member.

    >>> from rebalance_core.process.simulate import simulate
    >>> drawn = sketch({"orders": {"broker-a": 8}}, 3)
    >>> simulate(drawn).epochs["queues"].to_pylist()[-1]
    9
    """
    mistakes: list[str] = []
    numbers = check_queue_numbers("topics", topics, mistakes)
    if isinstance(members, int):
        ids = [f"10.0.{n // 250}.{n % 250 + 1}@{20_000 + n}#{10**12 + n}" for n in range(members)]
    else:
        ids = list(members)
    if not ids:
        mistakes.append(f"members = {members!r}: pass an integer of at least 1, or client ids")
    if mistakes:
        raise UsageError("\n".join(mistakes))
    rows: list[dict[str, Any]] = []

    def seen(event_type: str, **more: Any) -> None:
        base = {
            "cluster": cluster,
            "event_ms": SKETCHED_MS,
            "sequence": len(rows),
            "detail": "OBSERVED",
        }
        rows.append({**base, "event_type": event_type, **more})

    for broker in sorted({broker for of_topic in numbers.values() for broker in of_topic}):
        seen("BROKER_UP", broker_name=broker)
    for topic, brokers in numbers.items():
        for broker, count in brokers.items():
            seen(
                "TOPIC_CONFIG",
                topic=topic,
                broker_name=broker,
                read_queue_nums=count,
                write_queue_nums=count,
            )
    for number, client_id in enumerate(ids):
        seen(
            "CONSUMER_JOIN",
            consumer_group=group,
            client_id=client_id,
            channel_id=str(number),
            subscriptions=list(numbers),
        )
    settings = {"cluster": cluster, "consumer_group": group, "strategy": strategy_text(strategy)}
    made = {"cluster_events": rows, "consumer_groups": [settings | {"subscriptions": None}]}
    tables = {
        name: pa.Table.from_pylist(
            [
                {column: row.get(column) for column in INPUT_TABLES[name].column_names}
                for row in table_rows
            ]
            if name == "cluster_events"
            else table_rows
        )
        for name, table_rows in made.items()
    }
    return Tables(input_tables_of(tables).tables, f"Sketch of {group}")


def simulate(
    inputs: Any,
    /,
    options: SimulationOptions | None = None,
    *,
    state: str | Path | None = None,
    **more: Any,
) -> Tables:
    """Simulate the groups; see `rebalance_core.simulate`."""
    if options is not None and more:
        raise UsageError(f"pass options, or {', '.join(more)}, not both")
    names = SimulationOptions.__dataclass_fields__
    for name in more:
        if name not in names:
            raise UsageError(
                f"unknown option {name!r}{did_you_mean(name, names)} ({', '.join(names)})"
            )
    given = input_tables_of(dict(read_tables(inputs)))
    options = options or SimulationOptions(**more)
    if state is not None:
        given = with_state(given, state_folder(place_of(state)))
    return Tables(simulation.simulated_tables(given, options, options.bad_rows), "Ledger")


@contextmanager
def _folder_of(source: Any) -> Iterator[str]:
    """Yield a folder with the tables: the caller's, or a new one."""
    if isinstance(source, str | Path):
        yield str(source)
        return
    with tempfile.TemporaryDirectory() as name:
        for table, rows in read_tables(source).items():
            kept = rows.select(
                [c for c in rows.column_names if c in INPUT_TABLES[table].column_names]
            )
            pq.write_table(kept, Path(name) / f"{table}.parquet")
        yield name


def _run(words: Sequence[str]) -> JobReport:
    """Run a job quietly, adding its output to any error."""
    job, options = parse_options(words, JOBS)
    with redirect_stderr(StringIO()):
        return job.run(options)


def _written(folder: Path) -> dict[str, pa.Table]:
    """Return the tables of an output."""
    names = sorted(
        entry.name
        for entry in folder.iterdir()
        if entry.is_dir() and entry.name not in (INGESTED, STATE)
    )
    return {name: ds.dataset(folder / name, format="parquet").to_table() for name in names}


def _option_words(options: Mapping[str, Any]) -> list[str]:
    """Return Python options as words of a command line, where ``from_ms`` becomes ``--from``."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.removesuffix("_ms").replace("_", "-")
        if value is True:
            words.append(option)
        elif isinstance(value, list | tuple):
            words += [word for item in value for word in (option, str(item))]
        elif value is not None and value is not False:
            words += [option, str(value)]
    return words


def audit_collection(collection: str | Path, **options: Any) -> Audit:
    """Audit a collection; see `rebalance_core.audit_collection`."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "audit"
        words = ["audit", "--collection", str(collection), "--output", str(out)]
        report = _run([*words, "--run-on", "process", *_option_words(options)])
        page = (out / "report.html").read_text("utf-8")
        return Audit(_written(out), report, page)


def plan(
    tables: Any, scenarios: Sequence[str | Path] = (), strategies: Any = (), **options: Any
) -> Tables:
    """Plan scenarios and strategies; see `rebalance_core.plan`."""
    scenarios = [scenarios] if isinstance(scenarios, str | Path) else scenarios
    single = isinstance(strategies, str) or not isinstance(strategies, Sequence)
    texts = _texts([strategies] if single else strategies)
    with _folder_of(tables) as folder, tempfile.TemporaryDirectory() as name:
        out = Path(name) / "plan"
        words = ["plan", "--input", folder, "--output", str(out), "--run-on", "process"]
        words += ["--scenario", *map(str, scenarios)] if scenarios else []
        words += [word for text in texts for word in ("--strategy", text)]
        _run([*words, *_option_words(options)])
        return Tables(_written(out), "Plan")


def size(tables: Any, **options: Any) -> Tables:
    """Size every group; see `rebalance_core.size`."""
    with _folder_of(tables) as folder, tempfile.TemporaryDirectory() as name:
        out = Path(name) / "sizes"
        words = ["size", "--input", folder, "--output", str(out), "--run-on", "process"]
        _run([*words, *_option_words(options)])
        return Tables(_written(out), "Sizes")


def _texts(strategies: Iterable[Any]) -> list[str]:
    """Return the texts of a plan's strategies, registering custom objects by name."""
    objects = [strategy for strategy in strategies if not isinstance(strategy, str)]
    names = [name_of(strategy) for strategy in objects]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two strategies have the name {twice}; give each its own name")
    return [strategy_text(strategy) for strategy in strategies]


class _LedgerHere(LedgerFolder):
    """The tables of a ledger in memory, with the interface of a ledger folder."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._tables = tables

    def has(self, table: str) -> bool:
        """Return True if the table exists."""
        return table in self._tables

    def rows(
        self, table: str, condition: ds.Expression | None, *columns: str
    ) -> list[dict[str, Any]]:
        """Return the rows of a table that satisfy the condition."""
        if table not in self._tables:
            raise InputRefused(
                f"there is no table {table}: pass what simulate or an audit returned"
            )
        read = ds.dataset(self._tables[table]).to_table(list(columns) or None, condition)
        rows: list[dict[str, Any]] = read.to_pylist()
        return rows


def explain_queue(
    ledger: Any, group: str, queue: str | MessageQueue, at: str | int, cluster: str | None = None
) -> Answer:
    """Return why a client owns a queue; see `rebalance_core.explain_queue`."""
    text = queue if isinstance(queue, str) else "/".join(map(str, queue))
    words = ["explain", "--ledger", ".", "--group", group, "--queue", text, "--at", str(at)]
    _, options = parse_options(words, JOBS)
    assert isinstance(options, ExplainOptions)
    assert options.queue is not None
    if isinstance(ledger, str | Path):
        source = LedgerFolder(str(ledger))
    elif isinstance(ledger, Mapping):
        source = _LedgerHere(ledger)
    elif hasattr(ledger, "tables"):
        source = _LedgerHere(ledger.tables())
    else:
        raise UsageError(
            f"{type(ledger).__name__} is not a ledger; pass what simulate or audit_collection "
            "returned, or the folder that a job wrote"
        )
    asked = (source.cluster_of(group, cluster), group, options.queue, options.at_ms)
    try:
        explanation = Explainer(source.around(*asked)).explain(options.queue, options.at_ms)
    except KeyError:
        raise UsageError(f"{text}: members of {group} share the topic at that time") from None
    return Answer(replace(explanation, notes=(*explanation.notes, *source.doubts(*asked))))
