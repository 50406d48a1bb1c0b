"""A whole audit in a process against its parts: a ledger made alone, then judged as a whole."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.audit.counted_findings import capped
from rebalance_core.checks.digest import TableDigest
from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import AUDITED_TABLES, INPUT_TABLES, LEDGER_TABLES, REJECTED
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.contracts.table import batch_of_rows, rows_of_arrow
from rebalance_core.engine.options import LedgerConfig, SimulationOptions
from rebalance_core.engine.table_writer import LedgerTotals, TableWriters, Written, read_written
from rebalance_core.model.errors import InputRefused, OutputExists
from rebalance_core.process.audit import AuditInputs, audit_and_write, audit_unwritten
from rebalance_core.process.observed_tables import READ_TABLES, observed
from rebalance_core.process.redacted_rows import redacted
from rebalance_core.process.simulate import simulate, simulate_and_write
from tests.recordings.fleets import ingested_fleet, table_of
from tests.unit.process.whole_audits import audit_tables

Row = dict[str, Any]

PER_RULE = 2
NOW_MS = 1_700_000_000_000
BAD = {"table_name": "t", "source": "clients/shop-pod/rocketmq_client.log:3", "raw": "10.0.0.1@7",
       "issues": [{"code": "UNPARSABLE", "message": "of 10.0.0.1@7"}]}  # fmt: skip
JOIN: Row = {
    "cluster": "c", "event_ms": NOW_MS, "sequence": 0, "event_type": "CONSUMER_JOIN",
    "consumer_group": "g", "client_id": "a", "subscriptions": ["T"],
}  # fmt: skip
GHOST: Row = JOIN | {"sequence": 1, "event_type": "CONSUMER_LEAVE", "client_id": "ghost"}
NONE_BAD = LedgerConfig(BadRowLimits("fail"))


@pytest.fixture(scope="module")
def inputs() -> AuditInputs:
    fleet = ingested_fleet()
    history = input_tables_of({name: fleet[name] for name in INPUT_TABLES})
    return AuditInputs(history, observed({name: fleet[name] for name in READ_TABLES}))


@pytest.fixture(scope="module")
def simulated(
    inputs: AuditInputs, tmp_path_factory: pytest.TempPathFactory
) -> Written[LedgerTotals]:
    return simulate_and_write(inputs.history, tmp_path_factory.mktemp("simulated"))


@pytest.fixture(scope="module")
def tables(inputs: AuditInputs) -> dict[str, pa.Table]:
    """What is judged, with the ledger."""
    used = check_tables(inputs.history).tables
    return {**used, **inputs.seen.tables, **simulate(inputs.history).tables()}


@pytest.mark.parametrize("salt", [None, "s"])
def test_all_that_is_found_and_written(
    inputs: AuditInputs,
    simulated: Written[LedgerTotals],
    tables: dict[str, pa.Table],
    salt: str | None,
    tmp_path: Path,
) -> None:
    more, reports = table_of(REJECTED.name, [BAD]), list[tuple[int, int]]()
    made = audit_and_write(
        replace(inputs, rejected=more),
        tmp_path / "out",
        findings_per_rule=PER_RULE,
        progress=lambda *counts: reports.append(counts),
        redact_salt=salt,
    )
    expected = audit_tables(tables, redact_salt=salt)
    assert by_text(made.result.findings) == by_text(expected.findings)
    assert by_text(made.result.verdicts) == by_text(expected.verdicts)
    assert made.result.runs == expected.runs
    assert made.ledger.facts == simulated.facts
    assert {name: made.ledger.inputs[name] for name in INPUT_TABLES} == simulated.inputs
    assert made.ledger.replay_reasons == simulated.replay_reasons
    assert made.ledger.rejected == Counter(simulated.rejected) + Counter({"UNPARSABLE": 1})
    assert reports[-1][1] == len(expected.verdicts)

    ledger = {name: tables[name] for name in LEDGER_TABLES}
    ledger[REJECTED.name] = pa.concat_tables([ledger[REJECTED.name], more])
    written = {name: read_written(tmp_path / "out", name) for name in AUDITED_TABLES}
    assert list(made.ledger.tables) == list(AUDITED_TABLES)
    for name, rows in ledger.items():
        shown = rows if salt is None else without_clients(rows, salt)
        found = made.ledger.tables[name]
        assert found == digest(name, shown).result == digest(name, written[name]).result
    kept: list[Row] = rows_of_arrow(written["findings"])
    assert by_text(kept) == by_text(capped(expected.findings, PER_RULE))
    assert len(kept) < len(expected.findings)
    assert by_text(rows_of_arrow(written["group_verdicts"])) == by_text(expected.verdicts)
    with pytest.raises(OutputExists, match="exists already"):
        audit_and_write(inputs, tmp_path / "out", findings_per_rule=PER_RULE)


def test_a_dry_run_finds_the_same(inputs: AuditInputs, tables: dict[str, pa.Table]) -> None:
    forecast, result = audit_unwritten(inputs, SimulationOptions(), BadRowLimits())
    assert forecast.refusal is None
    assert forecast.counts.keys() == set(INPUT_TABLES)
    assert result is not None
    assert result.counts() == audit_tables(tables).counts()


def test_bad_rows_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    inputs = of_events(JOIN, JOIN | {"sequence": 2, "client_id": None})
    with pytest.raises(InputRefused, match=r"1 of 2 rows are bad(.|\n)*client_id"):
        audit_and_write(
            inputs,
            tmp_path / "out",
            config=NONE_BAD,
            findings_per_rule=PER_RULE,
            before_writing=lambda: pytest.fail("no"),
        )
    assert not (tmp_path / "out").exists()
    forecast, result = audit_unwritten(inputs, SimulationOptions(), NONE_BAD.bad_rows)
    assert ("1 of 2" in str(forecast.refusal), result) == (True, None)


@pytest.mark.parametrize("salt", [None, "s"])
def test_events_of_unknown_members_count_as_bad_rows(salt: str | None, tmp_path: Path) -> None:
    """A refusal shows no row where no client id is to be shown."""
    inputs = of_events(JOIN, GHOST)
    called: list[int] = []
    config = LedgerConfig(BadRowLimits("fail"))
    with pytest.raises(InputRefused, match="1 of 2 rows are bad") as refusal:
        audit_and_write(
            inputs,
            tmp_path / "out",
            config=config,
            findings_per_rule=PER_RULE,
            before_writing=lambda: called.append(1),
            redact_salt=salt,
        )
    assert ("UNKNOWN_MEMBER 1" in str(refusal.value)) == (salt is None)
    assert called == [1]
    forecast, result = audit_unwritten(inputs, SimulationOptions(), config.bad_rows)
    assert ("1 of 2" in str(forecast.refusal), result) == (True, None)
    made = audit_and_write(inputs, tmp_path / "kept", findings_per_rule=PER_RULE)
    assert made.ledger.rejected == {"UNKNOWN_MEMBER": 1}
    assert made.ledger.tables[REJECTED.name].rows == 1


def test_rows_that_are_only_compared_with_are_rejected_and_never_refused(tmp_path: Path) -> None:
    held = {"cluster": "c", "consumer_group": "g", "topic": "T", "broker_name": "b",
            "queue_id": "x", "client_id": "a", "observed_ms": NOW_MS, "source": "s"}  # fmt: skip
    history = of_events(JOIN | {"colour": "red"}).history
    inputs = AuditInputs(history, observed({"observed_ownership": pa.Table.from_pylist([held])}))
    reports: list[str] = []
    made = audit_and_write(
        inputs, tmp_path / "out", config=NONE_BAD, findings_per_rule=PER_RULE, warn=reports.append
    )
    assert made.ledger.rejected == {"BAD_TYPE": 1}
    assert reports == ["cluster_events has unknown column(s), not read: colour"]
    again: list[str] = []
    forecast, _ = audit_unwritten(inputs, SimulationOptions(), NONE_BAD.bad_rows, warn=again.append)
    assert (again, list(forecast.complaints)) == (reports, [])


def test_rows_of_propagation_are_checked_as_on_spark(tmp_path: Path) -> None:
    change = {c.name: "c" if c.type == "STRING" else 0 for c in PROPAGATION.columns}
    rows = [change | {"gap_ms_p50": n} for n in range(2)]
    with TableWriters(tmp_path / "simulated", (PROPAGATION.name,)) as writers:
        writers.write(PROPAGATION.name, batch_of_rows(PROPAGATION, rows))
    inputs = of_events(JOIN).with_propagation(tmp_path / "simulated")
    made = audit_and_write(inputs, tmp_path / "out", config=NONE_BAD, findings_per_rule=PER_RULE)
    assert made.ledger.rejected == {"DUPLICATE_KEY": 2}
    assert made.ledger.tables[REJECTED.name].rows == 2


def of_events(*rows: Row) -> AuditInputs:
    history = input_tables_of({"cluster_events": pa.Table.from_pylist(list(rows))})
    return AuditInputs(history, observed({}))


def without_clients(rows: pa.Table, salt: str) -> pa.Table:
    return pa.Table.from_batches((redacted(b, salt) for b in rows.to_batches()), rows.schema)


def digest(name: str, rows: pa.Table) -> TableDigest:
    made = TableDigest(AUDITED_TABLES[name])
    made.add(rows)
    return made


def by_text(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)
