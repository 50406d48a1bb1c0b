"""The error for an unknown name: the known ones, and which of them was probably meant."""

from collections.abc import Sequence

from rebalance_core.model.errors import UsageError, did_you_mean


def unknown_name(
    kind: str,
    name: str,
    known: Sequence[str],
    listed: Sequence[str] | None = None,
    meant: str | None = None,
) -> UsageError:
    """An error that lists the known names (``listed`` if given) and the one ``meant``.

    That is the nearest of ``known`` where the caller does not know better.
    """
    names = ", ".join(listed or known) or "none"
    near = f"; did you mean {meant}?" if meant else did_you_mean(name, known)
    return UsageError(f"unknown {kind}: {name!r}; known: {names}{near}")
