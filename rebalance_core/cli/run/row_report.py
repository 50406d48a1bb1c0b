"""What a dry run says of the rows of its input, for a person and for a program."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rebalance_core.checks.row_limits import complaint_lines
from rebalance_core.cli.exit_codes import ExitCode
from rebalance_core.engine.options import RowForecast


@dataclass(frozen=True)
class RowReport:
    """A `RowForecast` in words."""

    forecast: RowForecast

    @property
    def exit_code(self) -> int:
        """The code that the run would end with for its rows."""
        refusal = self.forecast.refusal
        return ExitCode.OK if refusal is None else refusal.exit_code

    def facts(self) -> dict[str, Any]:
        """For the `--json` object."""
        counts, refusal = self.forecast.counts, self.forecast.refusal
        return {
            "exit_code": int(self.exit_code),
            "refused": None if refusal is None else str(refusal),
            "rows": {name: {"rows": c.rows, "bad": c.bad} for name, c in counts.items()},
            "complaints": [asdict(complaint) for complaint in self.forecast.complaints],
        }

    def input_lines(self, paths: Mapping[str, str]) -> list[str]:
        """For a person: what was counted in each input."""
        counts = self.forecast.counts
        return [
            "inputs",
            *(
                f"  {table:<18} {counts[table].rows:>9,} rows, {counts[table].bad:,} bad"
                f"  {path}".rstrip()
                for table, path in paths.items()
            ),
        ]

    def lines(self) -> list[str]:
        """For a person: what is wrong with which rows, and how a run would end."""
        complaints, refusal = self.forecast.complaints, self.forecast.refusal
        lines = ["", "bad rows", *complaint_lines(complaints)] if complaints else []
        if refusal is not None:
            first = str(refusal).partition("\n")[0]
            lines += ["", f"A run would end with exit code {self.exit_code}: {first}"]
        return lines
