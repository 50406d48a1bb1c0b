"""Custom strategies, hash functions and room resolvers: Python objects, by their names in files.

RocketMQ's clients accept a user's class for each of the three. Here, an object takes its place,
registered under a name, checked at registration, and called as a client would call it.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rebalance_core.model.errors import AllocationError, Terminated, UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.formula import Formula, Question
from rebalance_core.strategies.parameters import escape, unknown_name
from rebalance_core.strategies.plugin_modules import find_object
from rebalance_core.strategies.spi import AllocationStrategy, check_every_member, is_member
from rebalance_core.strategies.vectorised import Asked

STRATEGIES = "strategies"
HASH_FUNCTIONS = "hash_functions"
ROOM_RESOLVERS = "room_resolvers"
PLUGIN_KINDS = (STRATEGIES, HASH_FUNCTIONS, ROOM_RESOLVERS)
"""The kinds of plugins, named after the configuration sections that declare them."""
_METHODS: dict[str, dict[str, tuple[str, ...]]] = {
    STRATEGIES: {"allocate": ("client_id", "queues", "client_ids")},
    HASH_FUNCTIONS: {"__call__": ("key",)},
    ROOM_RESOLVERS: {"broker_room": ("queue",), "client_room": ("client_id",)},
}
_NOT_IN_NAMES = frozenset("(),=|% \t\n")
WRONG_TYPE = "TypeError"
LONG = range(-(2**63), 2**63)
"""Java's long, which a hash function returns."""


@dataclass(frozen=True, eq=False)
class Plugin:
    """A user's object; equal only to itself.

    Attributes:
        kind: One of `PLUGIN_KINDS`.
        name: The first name under which it was registered.
        made: The object.
    """

    kind: str
    name: str
    made: Any

    def ask(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of the user's code.

        Raises:
            AllocationError: The user's code raises an exception.
            UsageError: It tries to exit the process (`SystemExit`), which would end a client.
        """
        try:
            return call(*arguments)
        except (AllocationError, KeyboardInterrupt, Terminated):
            raise
        except Exception as error:
            raise AllocationError(type(error).__name__, str(error)) from error
        except BaseException as error:
            raise UsageError(f"{self.kind}: {self.name} {_ends_the_process(error)}") from error

    def wrong(self, answer: Any, valid: str) -> AllocationError:
        """Return the error for an answer of another type."""
        return AllocationError(
            WRONG_TYPE, f"{self.name} returned {answer!r:.80}, which is not a {valid}"
        )


_PLUGINS: dict[tuple[str, str], Plugin] = {}


def find(kind: str, name: str) -> Plugin | None:
    """Return the plugin with a name."""
    return _PLUGINS.get((kind, name))


def names(kind: str) -> tuple[str, ...]:
    """Return the first name of each plugin of a kind."""
    return tuple(dict.fromkeys(plugin.name for (of, _), plugin in _PLUGINS.items() if of == kind))


def known(kind: str) -> tuple[str, ...]:
    """Return all names of a kind."""
    return tuple(name for of, name in _PLUGINS if of == kind)


def plugins() -> dict[tuple[str, str], Plugin]:
    """Return all plugins by kind and name, to be installed in the processes that do the work."""
    return dict(_PLUGINS)


def install(loaded: dict[tuple[str, str], Plugin]) -> None:
    """Install exactly these plugins (`plugins`), as in the process that they come from."""
    _PLUGINS.clear()
    _PLUGINS.update(loaded)


def plugin_of(kind: str, name_or_object: Any) -> Plugin:
    """Return the plugin for a name or for an object, which receives a name.

    Raises:
        UsageError: The name is unknown, or in the cases listed for `keep`.
    """
    if not isinstance(name_or_object, str):
        return keep(kind, name_of(name_or_object), name_or_object)
    plugin = find(kind, name_or_object)
    if plugin is None:
        error = unknown_name(kind.removesuffix("s").replace("_", " "), name_or_object, known(kind))
        raise UsageError(f"{error}; name it in [{kind}] of the configuration")
    return plugin


def keep(kind: str, name: str, source: Any, allowed: Collection[str] | None = None) -> Plugin:
    """Register an object under a name, replacing an earlier object.

    Args:
        kind: One of `PLUGIN_KINDS`.
        name: Its name in files and texts.
        source: The object, a class to be called without arguments, or ``module:attribute``.
        allowed: The packages that ``module:attribute`` may come from; see
            `plugin_modules.find_object`.

    Raises:
        UsageError: The name is not valid in strategy texts; or the object may not be imported,
            cannot be imported or created, lacks a method, returns another type, or gives different
            answers to the same call.
    """
    if not name or not _NOT_IN_NAMES.isdisjoint(name):
        raise UsageError(f"{kind}: {name!r} is not a valid name; use a word without ( ) , = | %")
    what = f"{kind}: {name}"
    made = _load(what, source, allowed) if isinstance(source, str) else _made(what, source)
    earlier = next(
        (other for (k, _), other in _PLUGINS.items() if k == kind and other.made is made), None
    )
    plugin = earlier or Plugin(kind, name, made)
    if earlier is None:
        _check_methods(what, plugin)
        _PROBES[kind](what, plugin)
    _PLUGINS[kind, name] = plugin
    return plugin


def name_of(made: Any) -> str:
    """Return the default name of an object: its ``name`` or, failing that, its class name."""
    given_name = getattr(made, "name", None)
    if isinstance(given_name, str) and given_name:
        return given_name
    named = made if hasattr(made, "__qualname__") else type(made)
    return str(named.__qualname__).rpartition(".")[2]


_LOADED: dict[str, Any] = {}
"""The objects by ``module:attribute``, so that a repeated name refers to the same object."""


def _load(what: str, text: str, allowed: Collection[str] | None) -> Any:
    loaded = find_object(what, text, allowed)
    if text not in _LOADED:
        _LOADED[text] = _made(what, loaded)
    return _LOADED[text]


def _made(what: str, source: Any) -> Any:
    if not isinstance(source, type):
        return source
    try:
        return source()
    except (KeyboardInterrupt, Terminated):
        raise
    except Exception as error:
        raise UsageError(
            f"{what}: {source.__qualname__}() raises {type(error).__name__}: {error}; "
            "pass an object"
        ) from error
    except BaseException as error:
        raise UsageError(f"{what}: {source.__qualname__}() {_ends_the_process(error)}") from error


def _ends_the_process(error: BaseException) -> str:
    return f"raises {type(error).__name__}: {error}; a plugin must not end the process"


def _check_methods(what: str, plugin: Plugin) -> None:
    for name, arguments in _METHODS[plugin.kind].items():
        shown = f"{name}({', '.join(arguments)})".removeprefix("__call__")
        method = plugin.made if name == "__call__" else getattr(plugin.made, name, None)
        if not callable(method):
            raise UsageError(f"{what}: {plugin.made!r:.80} has no {shown}")
        try:
            inspect.signature(method).bind(*arguments)
        except TypeError as error:
            raise UsageError(f"{what}: its method must accept the call {shown}: {error}") from None
        except ValueError:
            continue  # C code, which has no signature


_IDS = ("10.0.0.1@20078#1", "10.0.0.2@20079#2", "10.0.0.3@20080#3")
_QUEUES = tuple(MessageQueue("T", broker, i) for broker in ("broker-a", "broker-b") for i in (0, 1))


def _two_answers(what: str, ask: Callable[[], Any], between: Callable[[], Any]) -> None:
    """Raise `UsageError` if an answer changes or has the wrong type; exceptions are ignored."""
    first = _answer_or_error(what, ask)
    _answer_or_error(what, between)
    if _answer_or_error(what, ask) != first:
        raise UsageError(
            f"{what} gives different results for the same arguments; a result may depend only on "
            "the arguments, not on chance, time or earlier calls"
        )


def _answer_or_error(what: str, ask: Callable[[], Any]) -> Any:
    """Return the answer, or the text of the exception: the user's code may expect other names."""
    try:
        return ask()
    except AllocationError as error:
        if error.java_class == WRONG_TYPE and error.__cause__ is None:
            raise UsageError(f"{what}: {error.java_message}") from None
        return str(error)


def _probe_strategy(what: str, plugin: Plugin) -> None:
    def ask(members: Sequence[str]) -> list[list[MessageQueue]]:
        return [_asked(plugin, member, _QUEUES, members) for member in members]

    _two_answers(what, lambda: ask(_IDS[:2]), lambda: ask(_IDS))


def _probe_hash(what: str, plugin: Plugin) -> None:
    hashed = CustomHash(plugin)
    _two_answers(what, lambda: hashed("10.0.0.1@20078#1-0"), lambda: hashed(str(_QUEUES[0])))


def _probe_rooms(what: str, plugin: Plugin) -> None:
    _two_answers(
        what,
        lambda: (
            asked_room(plugin, "broker_room", _QUEUES[0]),
            asked_room(plugin, "client_room", _IDS[0]),
        ),
        lambda: asked_room(plugin, "client_room", _IDS[1]),
    )


_PROBES: dict[str, Callable[[str, Plugin], None]] = {
    STRATEGIES: _probe_strategy,
    HASH_FUNCTIONS: _probe_hash,
    ROOM_RESOLVERS: _probe_rooms,
}


@dataclass(frozen=True)
class CustomStrategy(AllocationStrategy):
    """A user's ``AllocateMessageQueueStrategy``, called like a subclass of RocketMQ's base class.

    The base class's checks of the arguments come first. Exceptions raised by the object count as
    upstream's; unknown queues in its answer are treated as upstream treats them. It is called
    twice, so that a random answer also raises an error.
    """

    plugin: Plugin

    @property
    def name(self) -> str:
        """The name under which it is registered."""
        return self.plugin.name

    @property
    def keeps_to_topic(self) -> bool:
        """False: its answer may name any queue."""
        return False

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Return the object's answer."""
        if not is_member(client_id, queues, client_ids):
            return []
        lists = tuple(queues), tuple(client_ids)
        return self._share(_answers(self.plugin, *lists), client_id, *lists)

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """Return `allocate` for every distinct member."""
        check_every_member(queues, client_ids)
        lists = tuple(queues), tuple(client_ids)
        answers = _answers(self.plugin, *lists)
        return {
            member: self._share(answers, member, *lists) for member in dict.fromkeys(client_ids)
        }

    def vectorised(self) -> Asked:
        """Return the form of strategies that kernels call for every change."""
        return Asked()

    def formula(self, asked: Question) -> Formula:
        """Return the client that gets the queue."""
        queue, queues, client_ids, client_id = asked
        owners = []
        for member in dict.fromkeys(client_ids):
            with suppress(AllocationError):  # of other clients
                owners += [member] if queue in self.allocate(member, queues, client_ids) else []
        owner = client_id if client_id in owners else next(iter(owners), None)
        head = (
            f"custom code, called with mqAll {len(queues)}, cidAll {len(client_ids)}: it assigns "
            f"this queue to {', '.join(owners) or 'no client'}"
        )
        values = {"mqAll": len(queues), "cidAll": len(client_ids), "owners": owners}
        entry = None if owner is None else client_ids.index(owner)
        return Formula(str(self), (head,), values, entry, owner)

    def _share(
        self,
        answers: dict[str, list[MessageQueue] | AllocationError],
        client_id: str,
        queues: tuple[MessageQueue, ...],
        client_ids: tuple[str, ...],
    ) -> list[MessageQueue]:
        if client_id not in answers:
            answers[client_id] = _answer(self.plugin, client_id, queues, client_ids)
        answer = answers[client_id]
        if isinstance(answer, AllocationError):
            raise AllocationError(answer.java_class, answer.java_message)
        return list(answer)


@lru_cache(maxsize=64)
def _answers(
    plugin: Plugin, queues: tuple[MessageQueue, ...], client_ids: tuple[str, ...]
) -> dict[str, list[MessageQueue] | AllocationError]:
    """Return the answers that are already cached, by client."""
    return {}


def _answer(
    plugin: Plugin, client_id: str, queues: tuple[MessageQueue, ...], client_ids: tuple[str, ...]
) -> list[MessageQueue] | AllocationError:
    try:
        share = _asked(plugin, client_id, queues, client_ids)
        if _asked(plugin, client_id, queues, client_ids) == share:
            return share
    except AllocationError as error:
        return error
    return AllocationError(
        "NotDeterministic", f"{plugin.name} gives different results for the same arguments"
    )


def _asked(
    plugin: Plugin, client_id: str, queues: Iterable[MessageQueue], client_ids: Iterable[str]
) -> list[MessageQueue]:
    share = plugin.ask(plugin.made.allocate, client_id, list(queues), list(client_ids))
    if not isinstance(share, list | tuple):
        raise plugin.wrong(share, "list of queues; [] for no queue")
    for queue in share:
        if not isinstance(queue, MessageQueue) or not isinstance(queue.queue_id, int):
            raise plugin.wrong(queue, "MessageQueue")
    return list(share)


@dataclass(frozen=True)
class CustomHash:
    """A user's ``HashFunction`` of CONSISTENT_HASH."""

    plugin: Plugin

    def __call__(self, key: str) -> int:
        """Return the hash of a key.

        Raises:
            AllocationError: The function raises, or returns something other than a Java long.
        """
        value = self.plugin.ask(self.plugin.made, key)
        if not isinstance(value, int) or isinstance(value, bool) or value not in LONG:
            raise self.plugin.wrong(value, "whole number within Java's long")
        return value

    def __str__(self) -> str:
        """Return the value in a strategy text."""
        return escape(self.plugin.name)


def asked_room(plugin: Plugin, method: str, place: MessageQueue | str) -> str | None:
    """Return the room given by a resolver's method, or None if there is no room.

    Raises:
        AllocationError: The method raises or returns another type.
    """
    room = plugin.ask(getattr(plugin.made, method), place)
    if room is not None and not isinstance(room, str):
        raise plugin.wrong(room, "name of a room, nor None")
    return room
