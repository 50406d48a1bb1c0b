"""The channels of owners.toml: what a webhook's body may be, and what is wrong with one."""

from string import Template
from typing import Any

import pytest

from rebalance_core.history.channels import bundled_bodies
from rebalance_core.history.owners import Owners, read_owners
from rebalance_core.model.errors import UsageError

OWNER = '[[owner]]\npattern = "*"\nteam = "t"\nchannel = "#ops"\n'
BODY = '{"a": ["$title", {"b": "x $text $$5"}], "n": 7}'


def owners(body: str = BODY, name: str = "#ops", webhook: str = "OPS_WEBHOOK") -> Owners:
    text = f"[[channel]]\nname = '{name}'\nwebhook = '{webhook}'\nbody = '{body}'\n"
    return read_owners(OWNER + text, "owners.toml")


def test_a_body_is_filled_in_whatever_the_text_holds() -> None:
    (channel,) = owners().channels
    text = 'a "quote", a \\, $title, ${x}\nand 主题'
    made = channel.body_of("the title", text)
    assert made == {"a": ["the title", {"b": f"x {text} $5"}], "n": 7}


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("slack", {"text": "one\ntwo"}),
        ("dingtalk", {"msgtype": "text", "text": {"content": "one\ntwo"}}),
        ("feishu", {"msg_type": "text", "content": {"text": "one\ntwo"}}),
    ],
)
def test_bundled_bodies(name: str, made: dict[str, Any]) -> None:
    (channel,) = owners(name).channels
    assert channel.body_of("one", "two") == made


def test_a_card_of_teams() -> None:
    (channel,) = owners("teams").channels
    (attachment,) = channel.body_of("one", "two")["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert [block["text"] for block in attachment["content"]["body"]] == ["one", "two"]
    assert all(Template(body).is_valid() for body in bundled_bodies().values())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"body": "slak"}, "did you mean slack?"),
        ({"body": "{"}, "body: not JSON"),
        ({"body": '{"a": "\\ud800 $text"}'}, "body: not JSON"),
        ({"body": '{"a": "$txt $text"}'}, "body: $txt is unknown; valid are $title and $text"),
        ({"body": '{"a": "$title"}'}, "would name no finding"),
        ({"body": '{"a": "$ $text"}'}, "write $$ for a dollar sign"),
        ({"name": "#op"}, "no [[owner]] has the channel #op; did you mean #ops?"),
        ({"name": " "}, "name is missing"),
        ({"webhook": "https://hooks.example/s3cret"}, "not a URL"),
    ],
)
def test_mistakes_are_named_with_their_line(given: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        owners(**given)
    assert str(caught.value).startswith("owners.toml:5: ")
    assert said in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_two_entries_of_one_channel() -> None:
    one = "[[channel]]\nname = '#ops'\nwebhook = 'W'\nbody = 'slack'\n"
    with pytest.raises(UsageError, match=r"owners\.toml:9: channel #ops has two entries"):
        read_owners(OWNER + one + one, "owners.toml")
    with pytest.raises(UsageError, match="unknown key urll"):
        read_owners(OWNER + one + "urll = 'x'\n", "owners.toml")
