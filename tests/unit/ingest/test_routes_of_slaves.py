"""W that a route lacks while slaves alone answer for a broker."""

from rebalance_core.ingest.events.topic_timeline import RoutePerms

DOWN_MS, UP_MS = 100_000, 200_000


def masterless(broker: str, from_ms: int, to_ms: int) -> bool:
    return broker == "a" and from_ms <= UP_MS and to_ms >= DOWN_MS


def perms(*stated: tuple[str, int, int, bool]) -> RoutePerms:
    return RoutePerms(stated, masterless)


def test_a_route_without_the_master_shows_nothing_of_w() -> None:
    assert perms().registered("a", 150_000, 4, known_perm=6) == 6
    assert perms().registered("a", 150_000, 0, known_perm=2) == 2
    assert perms().registered("a", 150_000, 4, known_perm=4) == 4  # it was read-only before
    assert perms().registered("a", DOWN_MS - 4_000, 4, known_perm=6) == 6  # mqadmin asks later
    assert perms().registered("a", UP_MS + 501, 4, known_perm=6) == 6  # in the second of the return


def test_w_that_stands_there_is_true_and_so_is_all_else_of_a_route() -> None:
    assert perms().registered("a", 150_000, 6, known_perm=4) == 6
    assert perms().registered("a", 150_000, 0, known_perm=6) == 2  # R is gone: no client reads
    assert perms().registered("a", 50_000, 4, known_perm=6) == 4
    assert perms().registered("a", 300_000, 4, known_perm=6) == 4
    assert perms().registered("b", 150_000, 4, known_perm=6) == 4


def test_what_is_not_known_yet_is_what_is_reported_first() -> None:
    assert perms(("a", 150_000, 4, True)).registered("a", 150_000, 4, known_perm=None) == 4
    later = perms(("a", 150_000, 4, True), ("a", 250_000, 6, True), ("a", 400_000, 4, True))
    assert later.registered("a", 150_000, 4, known_perm=None) == 6
    stored = perms(("a", 150_000, 4, False), ("a", 250_000, 6, True))  # a store is no route
    assert stored.registered("a", 150_000, 4, known_perm=None) == 4
