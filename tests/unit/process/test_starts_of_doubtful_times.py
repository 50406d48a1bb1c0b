"""Observations of dumps and copies whose clock was off may be of any time in its error."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.coverage import UNSURE_MS, Coverage, LogSpan, coverage_of
from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.contracts.observed import CLOCK_UNSURE
from rebalance_core.engine.fan_out import fan_out
from rebalance_core.engine.ledger_pass import ledger_pass
from rebalance_core.engine.options import engine_options
from rebalance_core.ingest.collection import OFFSETS
from rebalance_core.process.widened_starts import WidenedStarts
from tests.unit.audit.snapshots import broker_logs
from tests.unit.process.widened_tables import (
    BEGIN_MS,
    CASES,
    COMMIT,
    LOOKS,
    MODES,
    checked_tables,
    key,
    tables_of,
)

ERROR_MS = 60_000
LATER = {**COMMIT, "observed_ms": BEGIN_MS + 170_000, "committed_offset": 44}
DATED: dict[str, dict[str, Any]] = {
    "nothing stored": {},
    "zero may be answered": CASES["zero may be answered"],
    "stored, and later": {"commits": (COMMIT, LATER)},
    "seen once": CASES["seen once"],
}


def widened(
    settings: dict[str, Any],
    errors: dict[int, int],
    logs: Coverage | None = None,
    **seen_of: tuple[dict[str, Any], ...],
) -> list[dict[str, Any]]:
    """The starts of `starts`, by moment how far off the observations of it may be."""
    tables = checked_tables(tables_of(settings, **seen_of))
    engine = engine_options(tables)
    grouped = fan_out(tables)
    some = grouped.tables_of(0, len(grouped))
    errors = {BEGIN_MS + at_ms: ms for at_ms, ms in errors.items()}
    coverage = replace(logs or Coverage(), named_error_ms=errors)
    unsure = WidenedStarts(None, {"c": AuditRun(0, 900_000, coverage=coverage)})
    made = unsure.widened(ledger_pass(some, engine, names_encoded=True), some, engine)
    rows = [row for name, of in made if name == "pull_starts" for row in of.to_pylist()]
    return sorted(rows, key=key)


def moved(rows: tuple[dict[str, Any], ...], by_ms: int) -> tuple[dict[str, Any], ...]:
    return tuple({**row, "observed_ms": row["observed_ms"] + by_ms} for row in rows)


@pytest.mark.parametrize("case", DATED)
@pytest.mark.parametrize("mode", ["LAST", "HALFWAY"])
def test_bounds_cover_the_start_at_every_time_of_the_observations(case: str, mode: str) -> None:
    observations, commits = DATED[case].get("observations", LOOKS), DATED[case].get("commits", ())
    errors = {row["observed_ms"] - BEGIN_MS: ERROR_MS for row in (*observations, *commits)}
    rows = widened(MODES[mode], errors, observations=observations, commits=commits)
    assert rows
    for by_ms in range(-ERROR_MS, ERROR_MS + 1, 15_000):
        others = widened(
            MODES[mode], {}, observations=moved(observations, by_ms), commits=moved(commits, by_ms)
        )
        for mine, other in zip(rows, others, strict=True):
            low, high = mine["start_offset_low"], mine["start_offset_high"]
            for offset in ("start_offset_low", "start_offset", "start_offset_high"):
                if other[offset] is not None:
                    assert low is not None, (key(mine), by_ms)
                    assert low <= other[offset], (key(mine), by_ms)
                    assert high is None or other[offset] <= high, (key(mine), by_ms)


def test_observations_of_clocks_that_agree_keep_the_bounds() -> None:
    sure = widened(MODES["LAST"], {}, commits=(COMMIT,))
    assert widened(MODES["LAST"], {96_000: ERROR_MS}, commits=(COMMIT,)) == sure
    unsure = widened(MODES["LAST"], {95_000: ERROR_MS, 200_000: ERROR_MS}, commits=(COMMIT,))
    estimates = [[(row["start_offset"], row["status"]) for row in of] for of in (sure, unsure)]
    assert unsure != sure
    assert estimates[0] == estimates[1]


def test_without_any_log_no_bounds_are_looked_for() -> None:
    """No start has bounds there, so that nothing has to be simulated again."""
    errors = {95_000: ERROR_MS, 200_000: ERROR_MS}
    sure = widened(MODES["LAST"], {}, commits=(COMMIT,))
    bare = Coverage(broker_logs(a=()), known=True)
    assert widened(MODES["LAST"], errors, bare, commits=(COMMIT,)) == sure
    logged = Coverage(broker_logs(a=[LogSpan(0, 900_000, from_start=True)]), known=True)
    assert widened(MODES["LAST"], errors, logged, commits=(COMMIT,)) != sure


def test_a_commit_that_a_client_logged_is_dated_by_its_log() -> None:
    mine = {**COMMIT, "client_id": "x", "observed_ms": BEGIN_MS + 120_000}
    sure = widened(MODES["LAST"], {}, commits=(mine,))
    assert widened(MODES["LAST"], {120_000: ERROR_MS}, commits=(mine,)) == sure


def test_dumps_and_copies_of_clocks_that_are_off_are_in_doubt() -> None:
    row: Any = dict.fromkeys(INGESTED_TABLES["coverage"].column_names)
    dump = row | {"role": "ADMIN", "kind": "admin", "from_ms": 1_000, "clock_error_ms": 20_000}
    copy = row | {"role": "BROKER", "kind": OFFSETS, "from_ms": 2_000, "note": CLOCK_UNSURE}
    log = row | {"role": "BROKER", "kind": "broker_log", "from_ms": 3_000, "clock_error_ms": 700}
    sure = row | {"role": "ADMIN", "kind": "admin", "from_ms": 4_000}
    found = coverage_of([dump, copy, log, sure], {}).named_error_ms
    assert found == {1_000: 20_000, 2_000: UNSURE_MS}
