"""The error for a name nobody knows: what is known, and which of it was probably meant."""

from collections.abc import Sequence
from difflib import get_close_matches

from rebalance_core.model.errors import UsageError


def unknown_name(
    kind: str, name: str, known: Sequence[str], listed: Sequence[str] | None = None
) -> UsageError:
    """An error that lists the known names (``listed`` if given) and the nearest of ``known``."""
    upper = {candidate.upper(): candidate for candidate in known}
    near = get_close_matches(name.upper(), list(upper), n=1, cutoff=0.5)
    hint = f"; did you mean {upper[near[0]]}?" if near else ""
    names = ", ".join(listed or known) or "none"
    return UsageError(f"unknown {kind}: {name!r}; known: {names}{hint}")
