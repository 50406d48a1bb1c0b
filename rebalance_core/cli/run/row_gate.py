"""The gate for bad rows: whether an input is refused for them, and what is said of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from rebalance_core.cli.exit_codes import ExitCode
from rebalance_core.cli.settings.settings import Settings
from rebalance_core.model.errors import InputRefused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rebalance_core.spark import SimulationOptions
    from rebalance_core.spark.tables.quarantine import Quarantined
    from rebalance_core.spark.tables.row_counts import Complaint, RowCounts

UNKNOWN_MEMBER = "UNKNOWN_MEMBER"
"""The issue that only the replay finds."""
SHOWN_COMPLAINTS = 10


def refuse_bad_rows(
    counts: "Mapping[str, RowCounts]",
    settings: Settings,
    complaints: "Callable[[], Sequence[Complaint]]",
) -> None:
    """Raise `InputRefused` if the input is empty or has more bad rows than the settings allow.

    ``complaints`` is asked only then; the message ends with the first row of each.
    """
    if counts["cluster_events"].rows == 0:
        raise InputRefused("cluster_events holds no row; there is nothing to simulate")
    for name, count in counts.items():
        share = count.bad / count.rows if count.rows else 0.0
        told = f"{name}: {count.bad:,} of {count.rows:,} rows are bad"
        if count.bad and settings.on_bad_rows == "fail":
            told += "; --on-bad-rows fail allows none"
        elif share > settings.max_bad_share:
            told += (
                f" ({share:.0%}), more than max_bad_share = {settings.max_bad_share}; "
                "is it the right file? --set max_bad_share=1 lists them all in `rejected`"
            )
        else:
            continue
        of_table = [one for one in complaints() if one.table == name]
        raise InputRefused("\n".join([told, *complaint_lines(of_table)]))


def complaint_lines(complaints: "Sequence[Complaint]") -> list[str]:
    """A line a code: how often it stands, and the first row that has it."""
    lines = [
        f"  {one.code} {one.times:,}, first {one.source}: {one.message}"
        for one in complaints[:SHOWN_COMPLAINTS]
    ]
    more = len(complaints) - SHOWN_COMPLAINTS
    return [*lines, f"  and {more} more codes"] if more > 0 else lines


@dataclass(frozen=True)
class Foretold:
    """What a run would make of its rows; for --dry-run."""

    counts: "Mapping[str, RowCounts]"
    complaints: "Sequence[Complaint]"
    refusal: InputRefused | None

    @property
    def exit_code(self) -> int:
        """The code that the run would end with for its rows."""
        return ExitCode.OK if self.refusal is None else self.refusal.exit_code

    def without_rows(self) -> "Foretold":
        """The same with no word of any row: rows may name clients."""
        refusal = self.refusal and InputRefused(str(self.refusal).partition("\n")[0])
        return replace(self, complaints=(), refusal=refusal)

    def facts(self) -> dict[str, Any]:
        """For the `--json` object."""
        return {
            "exit_code": int(self.exit_code),
            "refused": None if self.refusal is None else str(self.refusal),
            "rows": {name: {"rows": c.rows, "bad": c.bad} for name, c in self.counts.items()},
            "complaints": [asdict(one) for one in self.complaints],
        }

    def input_lines(self, paths: Mapping[str, str]) -> list[str]:
        """For a person: what was counted in each input."""
        return [
            "inputs",
            *(
                f"  {table:<18} {self.counts[table].rows:>9,} rows, {self.counts[table].bad:,} bad"
                f"  {path}".rstrip()
                for table, path in paths.items()
            ),
        ]

    def lines(self) -> list[str]:
        """For a person: what is wrong with which rows, and how a run would end."""
        lines = ["", "bad rows", *complaint_lines(self.complaints)] if self.complaints else []
        if self.refusal is not None:
            first = str(self.refusal).partition("\n")[0]
            lines += ["", f"A run would end with exit code {self.exit_code}: {first}"]
        return lines


def foretell(
    checked: "Quarantined",
    counts: "Mapping[str, RowCounts]",
    options: "SimulationOptions",
    settings: Settings,
) -> Foretold:
    """How the gate would decide, before and after the replay, which is run for what it rejects."""
    from rebalance_core.spark.engine.simulate import simulate_checked
    from rebalance_core.spark.tables.row_counts import complaints

    found: list[Complaint] = []

    def look(rejected: "DataFrame") -> "Sequence[Complaint]":
        found[:] = complaints(rejected)
        return found

    try:
        refuse_bad_rows(counts, settings, lambda: look(checked.rejected))
        look(simulate_checked(checked, options).rejected)
        unknown = sum(one.times for one in found if one.code == UNKNOWN_MEMBER)
        counts = with_unknown_members(counts, unknown)
        refuse_bad_rows(counts, settings, lambda: found)
    except InputRefused as refusal:
        return Foretold(counts, found, refusal)
    return Foretold(counts, found, None)


def with_unknown_members(
    counts: "Mapping[str, RowCounts]", unknown: int
) -> "Mapping[str, RowCounts]":
    """The counts with the events that the replay rejects among the bad rows."""
    of_events = counts["cluster_events"]
    bad = type(of_events)(of_events.rows, of_events.bad + unknown)
    return {**counts, "cluster_events": bad}
