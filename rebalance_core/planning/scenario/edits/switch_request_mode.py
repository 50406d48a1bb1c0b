"""switch_request_mode: brokers serve a topic of a group by POP from now on, or by PULL again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rebalance_core.model.group_settings import (
    BROKER_REBALANCE,
    CLIENT_REBALANCE,
    DEFAULT_SHARE_QUEUE_NUM,
    PULL_MODE,
    RequestMode,
    can_be_popped,
)
from rebalance_core.planning.scenario.edits.edit import GroupEdit, matches
from rebalance_core.planning.scenario.group_life import GroupLife, Settings
from rebalance_core.planning.scenario.keys import Key, one_of, patterns, required, whole

POP, PULL = "POP", "PULL"
LARGEST_SHARE_QUEUE_NUM = 10_000
_GLOB_SIGNS = frozenset("*?[")


@dataclass(frozen=True, kw_only=True)
class SwitchRequestMode(GroupEdit):
    """``mode`` of the topics of the groups, as ``mqadmin setConsumeMode`` sets it.

    The mode counts only for members that ask a broker (``clientRebalance=false``);
    ``rebalance_mode`` makes all members do so, or divide themselves, from then on and under the
    same ids. A mode that the history sets later for one of these topics is dropped.
    """

    KIND = "switch_request_mode"
    KEYS: ClassVar[Mapping[str, Key]] = {
        "group": required(patterns),
        "topic": Key(patterns, ("*",)),
        "mode": required(one_of(POP, PULL)),
        "share_queue_num": Key(whole(-1, LARGEST_SHARE_QUEUE_NUM)),
        "rebalance_mode": Key(one_of(CLIENT_REBALANCE, BROKER_REBALANCE)),
    }

    topic: tuple[str, ...]
    mode: str
    share_queue_num: int | None
    rebalance_mode: str | None

    @classmethod
    def contradictions(cls, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Only POP shares."""
        if values.get("mode") == PULL and "share_queue_num" in values:
            yield "share_queue_num", f"goes with mode = {POP!r} only"

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Groups and topics."""
        return super().globs() | {"topic": ("topics", self.topic)}

    @property
    def request_mode(self) -> RequestMode:
        """The mode and its share number."""
        if self.mode == PULL:
            return PULL_MODE
        given = self.share_queue_num
        return RequestMode(DEFAULT_SHARE_QUEUE_NUM if given is None else given)

    def on_group(self, life: GroupLife, source: str) -> None:
        """Set the mode now and keep it; switch who is there, and whoever joins later."""
        named = [glob for glob in self.topic if not _GLOB_SIGNS & set(glob)]
        topics = sorted({*life.topics, *named})
        topics = [topic for topic in topics if matches(topic, self.topic) and can_be_popped(topic)]
        if not topics:
            life.log.warn(f"{source}: {life.consumer_group} has no topic that it could be set for")
            return
        if self.rebalance_mode is not None:
            life.join_rules.append(self._switched)
            for member in life.members():
                life.rejoin(member, self._switched, source)
        elif self.mode == POP and not life.asks_broker():
            life.log.warn(
                f"{source}: no member of {life.consumer_group} asks a broker, so the mode has no "
                f'effect; rebalance_mode = "{BROKER_REBALANCE}" makes them'
            )
        for topic in topics:  # after the joins, so that it is a cause of the epoch, too
            life.set_request_mode(topic, self.request_mode, source)

    def _switched(self, settings: Settings) -> Settings:
        return settings | {"rebalance_mode": self.rebalance_mode}
