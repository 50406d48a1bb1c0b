"""The section ``[assume]`` of the settings: what ingest takes for granted where no file says it."""

from dataclasses import asdict

from rebalance_core.cli.settings.settings import Settings
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.ingest.parse.log_lines import known_zone
from rebalance_core.model.errors import RebalanceError, UsageError
from rebalance_core.model.versions import parse_version
from rebalance_core.strategies import parse_strategy


def assumptions(settings: Settings) -> Assumptions:
    """The section, checked.

    Raises:
        UsageError: names every value that is wrong.
    """
    given = settings.assume
    mistakes = []
    for name, check in (
        ("strategy", parse_strategy),
        ("client_version", parse_version),
        ("broker_version", parse_version),
    ):
        try:
            check(getattr(given, name))
        except RebalanceError as error:
            mistakes.append(f"assume.{name}: {error}")
    if not known_zone(given.time_zone):
        mistakes.append(f"assume.time_zone = {given.time_zone!r} is no time zone")
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return Assumptions(**asdict(given))
