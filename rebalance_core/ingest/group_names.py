"""Group names: facts from logs with a different name for a group are read under its name in
dumps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_core.model.queue import RETRY_TOPIC_PREFIX

_ENDS = ("", "_", "+")
"""The rest of a retry topic's name after the group: empty, or the topic that is popped."""


@dataclass(frozen=True, slots=True)
class OtherName:
    """A group whose name in logs appears in no dump or store.

    Attributes:
        in_logs: the name in logs.
        group: its name in dumps and stores.
        log: a log with the former name.
        dump: a dump or store with the latter name.
    """

    in_logs: str
    group: str
    log: str
    dump: str


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a fact's value with the groups and their retry topics under their other names.

    >>> renamed({"group": "g1", "topics": ["%RETRY%g1", "T"]}, {"g1": "orders"})
    {'group': 'orders', 'topics': ['%RETRY%orders', 'T']}
    """
    if isinstance(value, str):
        return names.get(value) or _renamed_topic(value, names)
    if isinstance(value, Mapping):
        return {renamed(key, names): renamed(part, names) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(renamed(part, names) for part in value)
    return value


def _renamed_topic(topic: str, names: Mapping[str, str]) -> str:
    rest = topic.removeprefix(RETRY_TOPIC_PREFIX)
    if rest != topic:
        for name, group in names.items():
            end = rest.removeprefix(name)
            if end != rest and end[:1] in _ENDS:
                return f"{RETRY_TOPIC_PREFIX}{group}{end}"
    return topic
