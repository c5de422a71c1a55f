"""Prices of API tokens: every listing sourced, faults named all at once."""

import datetime as dt
from pathlib import Path

import pytest

from catalog.read_api_prices import API_PRICES_FOLDER, ApiPriceError, read_api_prices, sellers_of

PRICES = read_api_prices()


def test_every_listing_has_a_source_and_a_day() -> None:
    assert len(PRICES.rows) == 4612
    assert {row.source for row in PRICES.rows.values()} == set(PRICES.sources)
    for row in PRICES.rows.values():
        assert row.seen_on >= dt.date(2026, 10, 1)
        assert row.valid_from is None or row.valid_from <= row.seen_on


def test_a_model_is_found_by_seller_and_by_its_own_name() -> None:
    everywhere = sellers_of(PRICES, "Llama-3.3-70B-Instruct")
    assert len({row.provider for row in everywhere}) > 10
    one = sellers_of(PRICES, "novita/meta-llama/llama-3.3-70b-instruct")
    assert [row.id for row in one] == ["novita/meta-llama/llama-3.3-70b-instruct"]
    assert sellers_of(PRICES, "no-such-model") == ()


def test_faults_come_at_once(tmp_path: Path) -> None:
    lines = (API_PRICES_FOLDER / "prices.csv").read_text().splitlines()[:3]
    (tmp_path / "sources.toml").write_text((API_PRICES_FOLDER / "sources.toml").read_text())
    broken = lines[1].split(",")
    broken[2] = "-1"
    (tmp_path / "prices.csv").write_text("\n".join([lines[0], ",".join(broken), lines[2], lines[2]]))
    with pytest.raises(ApiPriceError) as refused:
        read_api_prices(tmp_path)
    assert "usd_per_million_input_tokens" in str(refused.value)
    assert "stated twice" in str(refused.value)
