"""What the environment sets, and what is refused."""

import pytest

from service.agent.cli import build_parser
from service.cli.client import Client
from service.settings import SettingsError, read_settings


def test_an_empty_address_or_token_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTERWRIGHT_URL", "")
    monkeypatch.setenv("CLUSTERWRIGHT_TOKEN", "")
    settings = read_settings()
    assert (settings.url, settings.token) == (None, None)
    assert Client(settings, "http://planner.example").url == "http://planner.example"
    arguments = build_parser().parse_args(["upload"])
    assert (arguments.url, arguments.token) == ("http://127.0.0.1:8000", None)


@pytest.mark.parametrize(
    ("name", "value"), [("URL", " "), ("URL", "planner.example"), ("DATABASE_URL", ""), ("DATABASE_URL", "mysql://x")]
)
def test_what_no_command_can_use_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"CLUSTERWRIGHT_{name}", value)
    with pytest.raises(SettingsError, match=f"CLUSTERWRIGHT_{name}: "):
        read_settings()
