"""Single losses: an edit with ``each`` expands to one scenario per object that may be lost."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from glob import escape
from typing import Any

from rebalance_core.model.errors import UsageError
from rebalance_core.planning.client_ids import host_of
from rebalance_core.planning.scenario.cluster_edits import BrokerLoss, LoseRoom
from rebalance_core.planning.scenario.cluster_life import ClusterNames
from rebalance_core.planning.scenario.edit import HOST, ZONE, matches
from rebalance_core.planning.scenario.member_edits import RemoveConsumers
from rebalance_core.planning.scenario.scenario import Loss, Scenario

Clients = Mapping[str, Iterable[tuple[str, str]]]
"""By cluster: (consumer group, client id) of the members at the end of the history."""


Losing = BrokerLoss | LoseRoom | RemoveConsumers


def each_edit(scenario: Scenario) -> tuple[int, Losing] | None:
    """Return the number of the edit with ``each``, and the edit; None if there is none."""
    for number, edit in enumerate(scenario.edits):
        if isinstance(edit, Losing) and edit.each is not None:
            return number, edit
    return None


def names_clients(scenario: Scenario) -> bool:
    """Return True if the objects that may be lost are members, or places where members run."""
    found = each_edit(scenario)
    return found is not None and not isinstance(found[1], BrokerLoss)


def single_losses(
    scenario: Scenario, clusters: Mapping[str, ClusterNames], clients: Clients
) -> list[Scenario]:
    """Return a scenario for each object, or the scenario itself without ``each``.

    A scenario is called ``name/object``, or ``name/cluster/object`` if the edit concerns several
    clusters. Its edit is the one that a file would have for this object alone.

    Args:
        scenario: The scenario, as read from its file.
        clusters: The names in each cluster's events.
        clients: Needed if `names_clients`.

    Raises:
        UsageError: There is no such object, or one name is a prefix of another.
    """
    found = each_edit(scenario)
    if found is None:
        return [scenario]
    number, edit = found
    assert edit.each is not None
    chosen = sorted(name for name in clusters if matches(name, edit.cluster))
    losses = []
    for cluster in chosen:
        for name, values in _objects(edit, cluster, clusters[cluster], clients):
            path = (scenario.name, cluster, name) if len(chosen) > 1 else (scenario.name, name)
            lost = replace(edit, each=None, cluster=(escape(cluster),), **values)
            edits = (*scenario.edits[:number], lost, *scenario.edits[number + 1 :])
            loss = Loss(edit.each, cluster, name)
            losses.append(replace(scenario, name="/".join(path), edits=edits, loss=loss))
    if not losses:
        where = scenario.places[number] if scenario.places else scenario.source(number)
        raise UsageError(f'{where}: each = "{edit.each}" finds no {edit.each} to lose')
    return losses


def _objects(
    edit: Losing, cluster: str, names: ClusterNames, clients: Clients
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects in a cluster, each with the keys of an edit that loses it."""
    if isinstance(edit, BrokerLoss):
        for broker in sorted(names.brokers):
            if matches(broker, edit.broker or ("*",)):
                yield broker, {"broker": (escape(broker),)}
    elif isinstance(edit, RemoveConsumers):
        there = {client for group, client in clients.get(cluster, ()) if matches(group, edit.group)}
        for client_id in sorted(there):
            yield client_id, {"client_id": (escape(client_id),)}
    else:
        yield from _rooms(edit, names, [client_id for _, client_id in clients.get(cluster, ())])


def _rooms(
    edit: LoseRoom, names: ClusterNames, client_ids: Iterable[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield hosts or zones: those in the file of pods or, without one, the hosts in client ids."""
    hosts = sorted(set(map(host_of, client_ids)))
    column = {HOST: 1, ZONE: 2}[edit.each or HOST]
    placed = {place[0]: place[column] for place in edit.places or ()}
    rooms: dict[str, tuple[list[str], list[str]]] = {}
    for host in hosts:
        room = placed.get(host, "") if edit.places else host
        if room:
            rooms.setdefault(room, ([], []))[0].append(f"{host}@")
    for broker in sorted(names.brokers):
        if placed.get(broker):
            longer = [name for name in names.brokers if name.startswith(broker) and name != broker]
            if longer:
                raise UsageError(
                    f"places: the broker {broker} cannot be lost alone: the name of "
                    f"{min(longer)} begins with its name"
                )
            rooms.setdefault(placed[broker], ([], []))[1].append(broker)
    for room, (clients, brokers) in sorted(rooms.items()):
        yield (
            room,
            {
                "room": (room,),
                "client_prefixes": tuple(clients),
                "broker_prefixes": tuple(brokers),
                "places": None,
            },
        )
