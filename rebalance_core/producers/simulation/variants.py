"""Which versions and settings a simulation compares."""

from collections.abc import Sequence

from rebalance_core.model.versions import Version, parse_version
from rebalance_core.producers.simulation.model import ProducerModel, Variant

BOTH_GENERATIONS = (parse_version("4.9"), parse_version("5.3"))
"""The fault strategy was rewritten in 5.1.4; these stand for before and after."""


def variants_of(
    model: ProducerModel, versions: Sequence[Version] = BOTH_GENERATIONS
) -> dict[str, tuple[Variant, ...]]:
    """By group its own variant first, then each version without and with fault tolerance.

    Args:
        model: What is simulated.
        versions: To compare with; a group's own is always among them.
    """
    compared: dict[str, tuple[Variant, ...]] = {}
    for group in model.groups:
        every = sorted({*versions, group.variant.version})
        both = [Variant(version, enabled) for version in every for enabled in (False, True)]
        compared[group.name] = tuple(dict.fromkeys([group.variant, *both]))
    return compared
