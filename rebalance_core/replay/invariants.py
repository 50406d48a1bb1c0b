"""Every invariant of a simulated ledger, checked on its rows alone: a public check.

The package itself never calls it; tests of both engines do, and other producers of ledgers can. It
depends on the contracts and not on how the rows were made, so it applies equally to the replay, the
kernels and a ledger read back from disk.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

from rebalance_core.contracts import SIMULATED_TABLES
from rebalance_core.model.clients import profile_of_row
from rebalance_core.replay.epoch_invariants import (
    Holders,
    Instant,
    Row,
    epoch_errors,
    queue_of,
    share_known,
)
from rebalance_core.replay.sharing_invariants import sharing_errors

INTERVAL_TABLES = ("ownership", "memberships", "consumer_load", "pop_reach", "queue_states")
EPOCH_TABLES = ("diffs", "pull_starts", "group_metrics", "pop_metrics")


def check_ledger(tables: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return the invariants that the ledger of one or more groups violates; empty if it is sound.

    Args:
        tables: rows by table name as `replay_group` returns them; every simulated table is
            required, others (``rejected``) are ignored.

    Returns:
        One sentence per violation. Rows that lack required columns, and epochs that are not
        numbered 0, 1, 2 …, hide further violations, because other rows cannot be looked up by them.

    Cost: rows + epochs x (queues + members) of each group.
    """
    malformed = [error for name in SIMULATED_TABLES for error in _column_errors(name, tables)]
    if malformed:
        return malformed
    errors = [error for name in SIMULATED_TABLES for error in _key_errors(name, tables[name])]
    groups: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for name in SIMULATED_TABLES:
        for row in tables[name]:
            group = groups.setdefault((row["cluster"], row["consumer_group"]), defaultdict(list))
            group[name].append(row)
    for (cluster, group_name), ledger in groups.items():
        errors += (f"{cluster}/{group_name}: {error}" for error in _group_errors(ledger))
    return errors


def _column_errors(name: str, tables: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    if name not in tables:
        yield f"table {name} is missing"
        return
    table = SIMULATED_TABLES[name]
    for row in tables[name]:
        if set(row) != set(table.column_names):
            odd = sorted(set(row) ^ set(table.column_names))
            yield f"{name}: columns {odd} are missing or unknown in {dict(row)}"
        else:
            nulls = [c.name for c in table.columns if not c.nullable and row[c.name] is None]
            if nulls:
                yield f"{name}: {nulls} must not be null in {dict(row)}"


def _key_errors(name: str, rows: Sequence[Row]) -> Iterator[str]:
    key = SIMULATED_TABLES[name].key
    counts = Counter(tuple(row[column] for column in key) for row in rows)
    for value, count in counts.items():
        if count > 1:
            yield f"{name}: {count} rows with the key {value}"


def _group_errors(ledger: dict[str, list[Row]]) -> Iterator[str]:
    epochs = sorted(ledger["epochs"], key=lambda row: row["epoch"])
    numbers = [row["epoch"] for row in epochs]
    if not epochs or numbers != list(range(len(epochs))):
        yield f"epochs are numbered {numbers}; expected 0, 1, 2 … without a gap"
        return
    yield from _time_errors(epochs)
    for name in INTERVAL_TABLES:
        yield from _interval_errors(name, ledger[name], epochs)
    yield from _overlap_errors(ledger)
    for name in EPOCH_TABLES:
        for row in ledger[name]:
            if not 0 <= row["epoch"] < len(epochs):
                yield f"{name}: epoch {row['epoch']} does not exist"
    for instant in _instants(ledger, epochs):
        for error in chain(epoch_errors(instant), sharing_errors(instant)):
            yield f"epoch {instant.epoch['epoch']}: {error}"


def _time_errors(epochs: list[Row]) -> Iterator[str]:
    for row, following in zip(epochs, [*epochs[1:], None], strict=True):
        expected = None if following is None else following["from_ms"]
        if row["to_ms"] != expected:
            yield f"epoch {row['epoch']} ends at {row['to_ms']}; expected {expected}"
        if expected is not None and not row["from_ms"] < expected:
            yield f"epoch {row['epoch'] + 1} does not begin after epoch {row['epoch']}"


def _interval_errors(name: str, rows: list[Row], epochs: list[Row]) -> Iterator[str]:
    """Check that each interval covers whole epochs and carries their times."""
    starts = {row["epoch"]: row["from_ms"] for row in epochs}
    for row in rows:
        start, end = row["from_epoch"], row["to_epoch"]
        if start not in starts or (end is not None and (end not in starts or end <= start)):
            yield f"{name}: epochs {start} to {end} do not exist or are empty: {dict(row)}"
        elif "from_ms" in row and (row["from_ms"], row["to_ms"]) != (
            starts[start],
            starts.get(end),
        ):
            yield (
                f"{name}: from_ms and to_ms differ from those of epochs {start} and {end}: "
                f"{dict(row)}"
            )


def _overlap_errors(ledger: dict[str, list[Row]]) -> Iterator[str]:
    """Check that rows with the same identity do not overlap, and touch only where something
    changes.
    """
    for name in INTERVAL_TABLES:
        table = SIMULATED_TABLES[name]
        identity = [column for column in table.key if column != "from_epoch"]
        values = [
            column
            for column in table.column_names
            if column not in ("from_epoch", "to_epoch", "from_ms", "to_ms")
        ]
        chains: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in ledger[name]:
            chains[tuple(row[column] for column in identity)].append(row)
        for who, of_identity in chains.items():
            of_identity.sort(key=lambda row: row["from_epoch"])
            for earlier, later in pairwise(of_identity):
                if earlier["to_epoch"] is None or earlier["to_epoch"] > later["from_epoch"]:
                    yield f"{name}: overlapping rows of {who} at epoch {later['from_epoch']}"
                elif earlier["to_epoch"] == later["from_epoch"] and all(
                    earlier[column] == later[column] for column in values
                ):
                    yield f"{name}: {who} is split at epoch {later['from_epoch']} for no reason"


def _instants(ledger: dict[str, list[Row]], epochs: list[Row]) -> Iterator[Instant]:
    by_epoch: dict[str, dict[int, list[Row]]] = {}
    for name in EPOCH_TABLES:
        by_epoch[name] = defaultdict(list)
        for row in ledger[name]:
            by_epoch[name][row["epoch"]].append(row)
    before: Holders = {}
    were_known = True
    active = (_active(ledger[name], len(epochs)) for name in INTERVAL_TABLES)
    for epoch, owned, members, loads, reach, states in zip(epochs, *active, strict=True):
        holders: Holders = defaultdict(dict)
        for row in owned:
            holders[queue_of(row)][row["client_id"]] = row["holders"]
        number = epoch["epoch"]
        yield Instant(
            epoch=epoch,
            members=members,
            loads=loads,
            diffs=by_epoch["diffs"][number],
            pull_starts=by_epoch["pull_starts"][number],
            metrics=by_epoch["group_metrics"][number],
            reach=reach,
            pop_metrics=by_epoch["pop_metrics"][number],
            states=states,
            before=before,
            holders=holders,
            were_known=were_known,
        )
        before = holders
        were_known = were_known and all(map(share_known, members))
        were_known = were_known and not any(profile_of_row(m).may_be_doubtful for m in members)


def _active(rows: list[Row], epochs: int) -> Iterator[list[Row]]:
    """Yield the intervals that cover each epoch."""
    starting: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        starting[row["from_epoch"]].append(row)
    active: list[Row] = []
    for number in range(epochs):
        active = [row for row in active if row["to_epoch"] is None or number < row["to_epoch"]]
        active += starting[number]
        yield active
