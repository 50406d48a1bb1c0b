"""Random stories of groups of the shapes the kernels take, for hypothesis.

A story is a list of steps, each drawn by itself and read in order; a step that does not fit (a
leave of somebody who is not there) becomes an event about an unknown member. So any step can be
left out, and a failing example shrinks to the few that matter.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from rebalance_core.model.events import ACTING, MASTER_DOWN, MASTER_MODES, Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.config import Config
from tests.unit.replay.histories import event, join, topic

# U+1F600 sorts before U+FF5E for Java and after it in UTF-8. The last topic is one group's retry
# topic, so it is another group's for all others.
CLIENTS = ("x", "y", "x0", "\uff5ez", "😀z")
CHANNELS = (None, "1", "2")
TOPICS = ("T", "U", "😀", "\uff5e", "%RETRY%g")
BROKERS = ("a", "r1@b", "r2@c", "\uff5e", "😀")
TWINS = ("2", "\uff5e", "😀")
"""Channels of further processes of a client."""
TOPIC = st.sampled_from(("T", "T", "U", *TOPICS))
BROKER = st.sampled_from(("a", "a", "r1@b", *BROKERS))
CLIENT = st.sampled_from(CLIENTS)

ONE_FOR_ALL = ("AVG", "AVG_BY_CIRCLE")
"""The same strategy in every version."""
MODES = (
    "CONSUME_FROM_LAST_OFFSET",
    "CONSUME_FROM_FIRST_OFFSET",
    "CONSUME_FROM_TIMESTAMP",
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
)
OBSERVED = st.sampled_from((None, None, "OBSERVED"))
AFTER_MS = st.sampled_from((0, 0, 1, 1_000, 3_000, 5_000, 23_000, 54_000, 200_000))

ROOMS = (
    "(client_rooms=x:r1|y:r2|x0:r2|\uff5e:r1|😀:r3,"
    " broker_rooms=a:r1|r1@b:r2|r2@c:r9|\uff5e:r2|😀:r4)"
)
STRATEGIES = (
    *ONE_FOR_ALL,
    *(f"CONSISTENT_HASH(virtual_nodes={count})" for count in (0, 1, 3, 10)),
    "CONSISTENT_HASH(virtual_nodes=3, platform_charset=GBK)",
    "MACHINE_ROOM(consumer_idcs=r1)",
    "MACHINE_ROOM(consumer_idcs=r2|r1)",
    f"MACHINE_ROOM_NEARBY-AVG{ROOMS}",
    f"MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE{ROOMS}",
)
LISTS = tuple(
    str(Config(tuple(MessageQueue(*queue) for queue in queues)))
    for queues in (
        (),
        (("T", "a", 0), ("T", "a", 1), ("U", "r1@b", 0)),
        (("T", "a", 3), ("T", "a", 3), ("%RETRY%g", "a", 0), ("T", "nowhere", 7)),
        (("U", "a", 1), ("T", "r1@b", 2), ("😀", "\uff5e", 0), ("\uff5e", "😀", 40)),
    )
)
REBALANCE = st.sampled_from((None, None, None, "BROKER", "BROKER", "CLIENT", "PROXY"))
"""A member's own rebalance mode."""
OWN = st.sampled_from((None, *STRATEGIES, *LISTS, *LISTS))
"""A member's own strategy."""

COME = st.fixed_dictionaries(
    {
        "step": st.just("come"),
        "client": CLIENT,
        "channel": st.sampled_from(CHANNELS),
        "subscriptions": st.none() | st.lists(TOPIC, max_size=3).map(tuple),
        "version": st.sampled_from((None, None, "5.1", "4.9.7")),
        "mode": st.sampled_from((None, None, *MODES)),
        "repeats_group": st.booleans(),
        "strategy": OWN,
        "model": st.sampled_from((None, "CLUSTERING", "BROADCASTING")),
        "rebalance": REBALANCE,
        "detail": OBSERVED,
    }
)
GO = st.fixed_dictionaries(
    {
        "step": st.just("go"),
        "client": CLIENT,
        "how": st.sampled_from(("CONSUMER_LEAVE", "CONSUMER_LOST")),
        "detail": st.sampled_from((None, "CLOSED", "EXPIRED")),
        "back_on": st.sampled_from(("-", "-", *CHANNELS)),
    }
)
DOUBLED = st.sampled_from(("x", "x", "x", "y", *CLIENTS))
TWIN = st.fixed_dictionaries(
    {
        "step": st.just("twin"),
        "client": DOUBLED,
        "channel": st.sampled_from(TWINS),
        "subscriptions": st.none() | st.lists(TOPIC, max_size=3).map(tuple),
        "version": st.sampled_from((None, None, "5.1", "4.9.7")),
        "mode": st.sampled_from((None, None, *MODES)),
        "strategy": OWN,
        "model": st.sampled_from((None, "CLUSTERING", "BROADCASTING")),
        "rebalance": REBALANCE,
        "detail": OBSERVED,
    }
)
TWIN_GOES = st.fixed_dictionaries(
    {
        "step": st.just("twin goes"),
        "client": DOUBLED,
        "channel": st.sampled_from(TWINS),
        "how": st.sampled_from(("CONSUMER_LEAVE", "CONSUMER_LOST")),
        "detail": st.sampled_from((None, "CLOSED", "EXPIRED")),
    }
)
SLEEP = st.fixed_dictionaries(
    {
        "step": st.just("sleep"),
        "client": DOUBLED,
        "how": st.sampled_from(("CONSUMER_SUSPEND", "CONSUMER_SUSPEND", "CONSUMER_RESUME")),
        "channel": st.sampled_from((None, None, *TWINS)),
    }
)
SHARE = st.sampled_from((None, -1, 0, 1, 1, 2, 2, 3, 9))
MODE = st.fixed_dictionaries(
    {
        "step": st.just("mode"),
        "topic": TOPIC,
        "share": SHARE,
    }
)
MASTER = st.fixed_dictionaries(
    {
        "step": st.just("master"),
        "broker": BROKER,
        "how": st.sampled_from(("MASTER_DOWN", "MASTER_DOWN", "MASTER_UP")),
        "mode": st.sampled_from((None, *MASTER_MODES, ACTING)),
    }
)
MASTERS = st.lists(st.tuples(AFTER_MS, MASTER), min_size=1, max_size=5).flatmap(
    lambda turns: st.sampled_from((0, 54_000, *(500_000,) * 6)).map(
        lambda after_ms: [(turns[0][0] + after_ms, turns[0][1]), *turns[1:]]
    )
)
"""Most of them after all windows of what happened before."""
STEP = st.one_of(
    COME,
    COME,
    GO,
    GO,
    st.fixed_dictionaries({"step": st.just("all go"), "order": st.permutations(CLIENTS)}),
    st.fixed_dictionaries(
        {
            "step": st.just("edit"),
            "client": CLIENT,
            "how": st.sampled_from(("SUBSCRIBE", "UNSUBSCRIBE")),
            "topic": TOPIC,
            "channel": st.sampled_from((None, None, *TWINS)),
        }
    ),
    st.fixed_dictionaries(
        {
            "step": st.just("configure"),
            "topic": TOPIC,
            "broker": BROKER,
            "queues": st.integers(0, 6),
            "perm": st.sampled_from((None, None, 6, 4, 2)),
            "detail": OBSERVED,
        }
    ),
    st.fixed_dictionaries(
        {"step": st.just("delete"), "topic": TOPIC, "broker": st.none() | BROKER}
    ),
    st.fixed_dictionaries(
        {
            "step": st.just("broker"),
            "broker": BROKER,
            "how": st.sampled_from(("BROKER_DOWN", "BROKER_UP")),
            "detail": st.sampled_from((None, "STOPPED", "EXPIRED")),
            "version": st.sampled_from((None, "4.9.7", "5.1.4")),
        }
    ),
)
STEPS = st.lists(st.tuples(AFTER_MS, STEP), min_size=4, max_size=16)
STEP_WITH_TRAITS = st.one_of(STEP, STEP, TWIN, TWIN_GOES, SLEEP)
STEPS_WITH_TRAITS = st.lists(st.tuples(AFTER_MS, STEP_WITH_TRAITS), min_size=6, max_size=20)
STEPS_WITH_MODES = st.lists(
    st.tuples(AFTER_MS, st.one_of(STEP_WITH_TRAITS, MODE)), min_size=6, max_size=20
)


@dataclass(slots=True)
class Story:
    """The events of one group, told step by step."""

    own_retry: str
    settings: GroupSettings
    at_ms: int = 0
    events: list[Event] = field(default_factory=list)
    traits: frozenset[str] = frozenset()
    """What may happen besides: of the traits of `random_groups`."""
    live: dict[str, Event] = field(default_factory=dict)
    """The last join of each client id."""
    twins: dict[tuple[str, str], Event] = field(default_factory=dict)
    """That of each further process of one."""

    def tell(self, step: dict[str, Any]) -> None:
        match step["step"]:
            case "come":
                self._come(step)
            case "go":
                self._go(step)
            case "twin" | "twin goes" | "sleep" | "mode" | "master":
                self._tell_of_trait(step)
            case "all go":
                for client in step["order"]:
                    if client in self.live:
                        self._say("CONSUMER_LEAVE", client)
                        del self.live[client]
            case "edit":
                # the group's own retry topic subscribed by hand is nothing for the kernels
                if step["how"] == "UNSUBSCRIBE" or step["topic"] != self.own_retry:
                    self._say_of_one(step, topic=step["topic"])
            case "configure":
                self.events.append(
                    topic(
                        self.at_ms,
                        step["queues"],
                        step["topic"],
                        step["broker"],
                        perm=step["perm"],
                        detail=step["detail"],
                    )
                )
            case "delete":
                self._say("TOPIC_DELETED", topic=step["topic"], broker_name=step["broker"])
            case "broker":
                version = step["version"] if step["how"] == "BROKER_UP" else None
                self._say(
                    step["how"], broker_name=step["broker"], detail=step["detail"], version=version
                )

    def _tell_of_trait(self, step: dict[str, Any]) -> None:
        match step["step"]:
            case "twin" if "twins" in self.traits:
                self._twin(step)
            case "twin goes" if "twins" in self.traits:
                twin = step["client"], step["channel"]
                self._say(step["how"], twin[0], detail=step["detail"], channel_id=twin[1])
                self.twins.pop(twin, None)
            case "sleep" if "sleep" in self.traits:
                self._say_of_one(step)
            case "master" if "masters" in self.traits:
                mode = step["mode"] if step["how"] == MASTER_DOWN else None
                self._say(step["how"], broker_name=step["broker"], detail=mode)
            case "mode" if "pop" in self.traits:
                share = step["share"]
                detail = "PULL" if share is None else f"POP(share_queue_num={share})"
                self._say("REQUEST_MODE", topic=step["topic"], detail=detail)

    def _say(self, what: str, client: str | None = None, **said: Any) -> None:
        if client is not None and "channel_id" not in said:
            said["channel_id"] = self.live[client].channel_id if client in self.live else "ghost"
        self.events.append(event(self.at_ms, what, client, **said))

    def _say_of_one(self, step: dict[str, Any], **said: Any) -> None:
        """Of the process on the step's channel, if there is one, or else the client's first."""
        if (step["client"], step["channel"]) in self.twins:
            said["channel_id"] = step["channel"]
        self._say(step["how"], step["client"], **said)

    def _version(self, version: str | None) -> str | None:
        """A strategy that differs by version is that of the group's unless members may differ."""
        settings = self.settings
        mixed = "own strategies" in self.traits
        if settings.strategy in ONE_FOR_ALL or version is None or mixed:
            return version
        return "4.9.7" if settings.client_version == "4.9" else "5.1"

    def _strategy(self, step: dict[str, Any]) -> str | None:
        return step["strategy"] if "own strategies" in self.traits else None

    def _model(self, step: dict[str, Any]) -> str | None:
        return step["model"] if "own models" in self.traits else None

    def _rebalance(self, step: dict[str, Any]) -> str | None:
        """Brokers know few strategies, and proxies no BROADCASTING."""
        strategy = self._strategy(step) or self.settings.strategy
        model = self._model(step) or self.settings.message_model
        if "own modes" not in self.traits:
            return None
        if step["rebalance"] == "BROKER" and strategy not in ONE_FOR_ALL:
            return "CLIENT"
        if step["rebalance"] == "PROXY" and model != "CLUSTERING":
            return "CLIENT"
        return step["rebalance"]

    def _twin(self, step: dict[str, Any]) -> None:
        """A process beside others of its client id."""
        twin = step["client"], step["channel"]
        if self.live.get(twin[0]) is not None and self.live[twin[0]].channel_id == twin[1]:
            return
        coming = join(
            self.at_ms,
            twin[0],
            channel_id=twin[1],
            detail=step["detail"],
            version=self._version(step["version"]),
            strategy=self._strategy(step),
            message_model=self._model(step),
            rebalance_mode=self._rebalance(step),
            consume_from_where=self.twins[twin].consume_from_where
            if twin in self.twins
            else step["mode"],
        )
        coming = replace(coming, subscriptions=step["subscriptions"])
        self.twins[twin] = coming
        self.events.append(coming)

    def _come(self, step: dict[str, Any]) -> None:
        settings, subscriptions = self.settings, step["subscriptions"]
        version = self._version(step["version"])
        own = settings if step["repeats_group"] else None
        coming = join(
            self.at_ms,
            step["client"],
            channel_id=step["channel"],
            detail=step["detail"],
            version=version,
            consume_from_where=step["mode"],
            strategy=self._strategy(step) or (own and own.strategy),
            message_model=self._model(step) or (own and own.message_model),
            rebalance_mode=self._rebalance(step) or (own and own.rebalance_mode),
        )
        coming = replace(coming, subscriptions=subscriptions)
        if (step["client"], step["channel"]) in self.twins:
            return
        if step["client"] in self.live:  # in place, so on the same channel
            known = self.live[step["client"]]
            coming = replace(coming, channel_id=known.channel_id)
            if subscriptions is None:
                coming = replace(coming, consume_from_where=known.consume_from_where)
        self.live[step["client"]] = coming
        self.events.append(coming)

    def _go(self, step: dict[str, Any]) -> None:
        client, back_on = step["client"], step["back_on"]
        self._say(step["how"], client, detail=step["detail"])
        known = self.live.pop(client, None)
        if known is not None and back_on != "-" and (client, back_on) not in self.twins:
            back = replace(known, event_ms=self.at_ms, channel_id=back_on, detail=None)
            self.live[client] = back
            self.events.append(back)
