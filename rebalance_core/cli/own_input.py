"""A run must not overwrite what it reads."""

import os
from pathlib import Path

from rebalance_core.cli.run.output_folder import OutputFolder
from rebalance_core.contracts.paths import is_local, local_path
from rebalance_core.model.errors import OutputExists

READ = (
    "input",
    "events",
    "consumer_groups",
    "queue_offsets",
    "committed_offsets",
    "queue_rates",
    "previous",
    "propagation",
)
"""Options that may name tables which a job of ours wrote; a collection is nobody's output."""


def refuse_own_input(folder: OutputFolder, options: object) -> None:
    """Raise `OutputExists` if --overwrite would remove what another option names.

    Args:
        folder: the output.
        options: of the job.
    """
    if not getattr(options, "overwrite", False):
        return
    for name in READ:
        given = getattr(options, name, None)
        if given and _is_within(given, folder.location):
            option = "--" + name.replace("_", "-")
            raise OutputExists(
                f"{option} {given} is in --output {folder.location}, which --overwrite would "
                "remove; name another --output"
            )


def _is_within(inner: str, outer: str) -> bool:
    if is_local(inner) != is_local(outer):
        return False
    if is_local(inner):
        # realpath, as resolve fails on links that name each other
        real_inner, real_outer = (Path(os.path.realpath(local_path(p))) for p in (inner, outer))
        return real_inner.is_relative_to(real_outer)
    return f"{_plain(inner)}/".startswith(f"{_plain(outer)}/")


def _plain(location: str) -> str:
    return location.rstrip("/").replace("s3a://", "s3://", 1)
