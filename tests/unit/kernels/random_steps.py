"""Random stories of groups of the shapes the kernels take, for hypothesis.

A story is a list of steps, each drawn by itself and read in order; a step that does not fit (a
leave of somebody who is not there) becomes an event about an unknown member. So any step can be
left out, and a failing example shrinks to the few that matter.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.replay.histories import event, join, topic

# U+1F600 sorts before U+FF5E for Java and after it in UTF-8. The last topic is one group's retry
# topic, so it is another group's for all others.
CLIENTS = ("x", "y", "x0", "\uff5ez", "😀z")
CHANNELS = (None, "1", "2")
TOPICS = ("T", "U", "😀", "\uff5e", "%RETRY%g")
BROKERS = ("a", "r1@b", "r2@c", "\uff5e", "😀")
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

COME = st.fixed_dictionaries(
    {
        "step": st.just("come"),
        "client": CLIENT,
        "channel": st.sampled_from(CHANNELS),
        "subscriptions": st.none() | st.lists(TOPIC, max_size=3).map(tuple),
        "version": st.sampled_from((None, None, "5.1", "4.9.7")),
        "mode": st.sampled_from((None, None, *MODES)),
        "repeats_group": st.booleans(),
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


@dataclass(slots=True)
class Story:
    """The events of one group, told step by step."""

    own_retry: str
    settings: GroupSettings
    at_ms: int = 0
    events: list[Event] = field(default_factory=list)
    live: dict[str, Event] = field(default_factory=dict)
    """The last join of each client id."""

    def tell(self, step: dict[str, Any]) -> None:
        match step["step"]:
            case "come":
                self._come(step)
            case "go":
                self._go(step)
            case "all go":
                for client in step["order"]:
                    if client in self.live:
                        self._say("CONSUMER_LEAVE", client)
                        del self.live[client]
            case "edit":
                # the group's own retry topic subscribed by hand is nothing for the kernels
                if step["how"] == "UNSUBSCRIBE" or step["topic"] != self.own_retry:
                    self._say(step["how"], step["client"], topic=step["topic"])
            case "configure":
                self.events.append(
                    topic(
                        self.at_ms, step["queues"], step["topic"], step["broker"],
                        perm=step["perm"], detail=step["detail"],
                    )
                )  # fmt: skip
            case "delete":
                self._say("TOPIC_DELETED", topic=step["topic"], broker_name=step["broker"])
            case "broker":
                version = step["version"] if step["how"] == "BROKER_UP" else None
                self._say(
                    step["how"], broker_name=step["broker"], detail=step["detail"], version=version
                )

    def _say(self, what: str, client: str | None = None, **said: Any) -> None:
        if client is not None:
            said["channel_id"] = self.live[client].channel_id if client in self.live else "ghost"
        self.events.append(event(self.at_ms, what, client, **said))

    def _come(self, step: dict[str, Any]) -> None:
        settings, version, subscriptions = self.settings, step["version"], step["subscriptions"]
        if settings.strategy not in ONE_FOR_ALL and version is not None:
            version = "4.9.7" if settings.client_version == "4.9" else "5.1"
        own = settings if step["repeats_group"] else None
        coming = join(
            self.at_ms, step["client"], channel_id=step["channel"], detail=step["detail"],
            version=version, consume_from_where=step["mode"],
            strategy=own and own.strategy, message_model=own and own.message_model,
        )  # fmt: skip
        coming = replace(coming, subscriptions=subscriptions)
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
        if known is not None and back_on != "-":
            back = replace(known, event_ms=self.at_ms, channel_id=back_on, detail=None)
            self.live[client] = back
            self.events.append(back)
