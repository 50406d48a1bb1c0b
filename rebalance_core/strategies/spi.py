"""The strategy interface: a frozen value with a name, a text and a method, and its checks."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rebalance_core.model.errors import AllocationError, UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import Version
from rebalance_core.strategies.formula import Formula, Question
from rebalance_core.strategies.parameters import Parameter, Params
from rebalance_core.strategies.vectorised import Vectorised

EMPTY_ARGUMENT = "IllegalArgumentException"
"""The error that Java's strategies raise for an empty id or list, among others."""
# str.isspace() counts these as white space, but Character.isWhitespace() does not.
_NOT_JAVA_WHITESPACE = "\x85\xa0\u2007\u202f"


class StrategyRefusedError(AllocationError, UsageError):
    """Upstream's constructor throws: both an upstream exception and a mistake in the settings."""


@dataclass(frozen=True)
class AllocationStrategy(ABC):
    """An ``AllocateMessageQueueStrategy`` of the client, with its settings.

    It is hashable, comparable and picklable, so that it is resolved once and shipped as an object.
    `registry`, the kernels, `explain`, inference from live ownership and the league of plans use
    only what a class declares.
    """

    NAME: ClassVar[str]
    """The name used in strategy texts."""
    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {}
    """The parameters by name, as passed to `make_strategy`."""
    JAVA_CLASS: ClassVar[str | None] = None
    """RocketMQ's class, as ``consumerStatus`` prints it after its package."""
    CANDIDATE: ClassVar[bool] = False
    """Whether it requires no parameters, so that a group may use it if no file states its
    strategy.
    """
    LEAGUE: ClassVar[tuple[str, ...]] = ()
    """The texts under which `plan` with ``--strategy league`` tries it."""

    @classmethod
    def make(cls, params: Params, version: Version) -> "AllocationStrategy":
        """Return the strategy as implemented by a client of a version.

        Args:
            params: The given, checked values of `PARAMETERS`.
            version: The client's version.

        Raises:
            UsageError: A parameter is missing, or parameters are mutually exclusive.
            StrategyRefusedError: Upstream's constructor throws.
        """
        return cls(**params)

    @property
    def name(self) -> str:
        """``getName()``, the name that logs print."""
        return self.NAME

    @abstractmethod
    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Return a client's queues, in the order in which upstream returns them.

        Args:
            client_id: The client that runs the pass (currentCID).
            queues: All readable queues of a topic (mqAll), sorted by `sort_queues`.
            client_ids: All members, including duplicates (cidAll), sorted by `sort_client_ids`.

        Raises:
            AllocationError: Upstream throws; the caller upstream then keeps what it holds.
        """

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """Return `allocate` of every distinct member, in the order of ``client_ids``.

        Strategies override it if the whole group costs less than the sum of its members; the result
        always equals that of this loop.
        """
        return {cid: self.allocate(cid, queues, client_ids) for cid in dict.fromkeys(client_ids)}

    @property
    def by_place(self) -> bool:
        """True if a share depends on the first place of a client id and on the number of ids."""
        return False

    @property
    def throws_for_all(self) -> bool:
        """True if an error for one member occurs for all, except for members with a blank id."""
        return False

    @property
    def returns_null(self) -> bool:
        """True if upstream returns Java's null where `allocate` returns an empty list."""
        return False

    @property
    def keeps_to_topic(self) -> bool:
        """True if every queue in a share is among the given queues."""
        return True

    def vectorised(self) -> Vectorised | None:
        """Return the form in which kernels allocate for many groups, or None to leave the strategy
        to the replay.
        """
        return None

    def formula(self, asked: Question) -> Formula:
        """Return how the strategy assigns a queue to a client, for `explain`.

        Raises:
            AllocationError: The strategy throws.
        """
        return Formula(str(self), (f"{self.name}: no formula is available",))

    def settings(self) -> list[tuple[str, str]]:
        """Return the (key, escaped value) pairs of the strategy text."""
        return []

    def __str__(self) -> str:
        """Return the strategy text; `parse_strategy` for the same version returns an equal
        strategy.
        """
        settings = ", ".join(f"{key}={value}" for key, value in self.settings())
        return f"{self.name}({settings})" if settings else self.name


def is_java_blank(text: str) -> bool:
    """Return ``StringUtils.isBlank``."""
    return all(c.isspace() and c not in _NOT_JAVA_WHITESPACE for c in text)


def is_member(
    client_id: str,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    *,
    blank_is_empty: bool = False,
) -> bool:
    """Return True if the client may allocate, or False if it is not listed (upstream: an empty
    list).

    All strategies except CONFIG share these checks: ``AbstractAllocateMessageQueueStrategy.check``
    (4.9.4 and later; in earlier versions, each class has the same checks). rocketmq.md §2.1.

    Args:
        client_id: The asking client.
        queues: mqAll.
        client_ids: cidAll.
        blank_is_empty: Whether to use isBlank instead of isEmpty (MACHINE_ROOM up to 4.9.3, POP).

    Raises:
        AllocationError: An argument is empty; the first of client, queues and members is reported.
    """
    if not client_id or (blank_is_empty and is_java_blank(client_id)):
        raise AllocationError("IllegalArgumentException", "currentCID is empty")
    if not queues:
        raise AllocationError("IllegalArgumentException", "mqAll is null or mqAll empty")
    if not client_ids:
        raise AllocationError("IllegalArgumentException", "cidAll is null or cidAll empty")
    return client_id in client_ids


def check_every_member(
    queues: Sequence[MessageQueue], client_ids: Sequence[str], *, blank_is_empty: bool = False
) -> None:
    """Raise the first error that querying the members in turn would raise; cost O(members)."""
    if client_ids and not queues:
        is_member(client_ids[0], queues, client_ids, blank_is_empty=blank_is_empty)
    if "" in client_ids or (blank_is_empty and any(map(is_java_blank, client_ids))):
        is_member("", queues, client_ids)
