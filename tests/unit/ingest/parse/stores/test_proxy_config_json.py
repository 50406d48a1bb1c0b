from rebalance_core.ingest.parse.config_stores import parse_proxy_config_json
from tests.unit.ingest.documents import codes, facts


def modes(text: str) -> list[str]:
    return [fact["mode"] for fact in facts(parse_proxy_config_json(text, "f"), "proxy_mode")]


def test_the_mode_it_was_told() -> None:
    assert modes('{"proxyMode":"CLUSTER","grpcServerPort":8081}') == ["CLUSTER"]
    assert modes('{"proxyMode":"local"}') == ["LOCAL"]
    assert parse_proxy_config_json("{}", "f") == []


def test_what_is_none_is_refused() -> None:
    assert codes(parse_proxy_config_json('{"proxyMode":"BOTH"}', "f")) == ["BAD_ENTRY"]
    assert codes(parse_proxy_config_json('{"proxyMode":1}', "f")) == ["BAD_ENTRY"]
    assert codes(parse_proxy_config_json("[]", "f")) == ["UNPARSABLE_DOCUMENT"]
