"""POST /v1/offers/import, and the readers of price lists."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.cli.main import main
from service.cli.prices import gpuhunt_list
from service.prices_import.recognise import read_quotes
from service.problems import InvalidFieldsError
from tests.conftest import postgres_database
from tests.service.bodies import RECOMMENDATION, changed
from tests.service.tco_bodies import INFEASIBLE, OFFER, RESULT, store_recommendation

URL = "/v1/offers/import"
SKYPILOT = """InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,Zone
p5.48xlarge,H100,8,192,2048,,50.0,20.0,us-east-1,us-east-1a
p5.48xlarge,H100,8,192,2048,,50.0,18.5,us-east-1,us-east-1b
p5.48xlarge,H100,8,192,2048,,60.0,,eu-north-1,eu-north-1a
,A100,1,,,,1.0,,us-east-1,us-east-1a
nobody.knows,H100,8,,,,1.0,,us-east-1,us-east-1a
"""
GPUHUNT = """instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor
p5.48xlarge,us-east-1,50.0,192,2048,8,H100,80,False,,nvidia
p5.48xlarge,us-east-1,18.5,192,2048,8,H100,80,True,,nvidia
"""
KARPENTER = {"prices": {"us-east-1": {"on_demand": {"p5.48xlarge": 50.0}, "spot": {"p5.48xlarge": 18.5}}}}
VANTAGE = [
    {
        "instance_type": "p5.48xlarge",
        "pricing": {
            "us-east-1": {
                "linux": {
                    "ondemand": "50.0",
                    "spot_min": "N/A",
                    "reserved": {
                        "yrTerm1Standard.noUpfront": "35.0",
                        "yrTerm1Standard.partialUpfront": "17.0",
                        "yrTerm3Standard.allUpfront": "22.0",
                    },
                },
                "mswin": {"ondemand": "70.0"},
            }
        },
    }
]
OWN = f"offer,usd_per_hour\n{OFFER},50.0\n"


@pytest.fixture
def seeded_url(database_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Imports change prices that other tests look at: on PostgreSQL too, every test has a database of its own."""
    if database_kind == "sqlite":
        path = tmp_path / "seeded.sqlite"
        shutil.copy(request.getfixturevalue("seeded_template"), path)
        yield f"sqlite:///{path}"
        return
    with postgres_database(request.getfixturevalue("postgres_template")) as url:
        yield url


def _body(payload: Any, **fields: Any) -> dict[str, Any]:
    return {"payload": payload, "provider": "aws", "valid_from": "2026-11-20T00:00:00Z", "source": "a test", **fields}


def _quotes(payload: Any, provider: str | None = "aws") -> tuple[str, dict[str, Decimal]]:
    name, quotes = read_quotes(payload, "auto", provider)
    return name, {quote.offer: quote.usd_per_hour for quote in quotes}


class TestReaders:
    def test_skypilot_takes_the_cheapest_zone(self) -> None:
        name, prices = _quotes(SKYPILOT)
        assert name == "skypilot"
        assert prices["aws:p5.48xlarge:us-east-1:spot"] == Decimal("18.5")
        assert prices["aws:p5.48xlarge:eu-north-1:on_demand"] == 60
        assert "aws:p5.48xlarge:eu-north-1:spot" not in prices

    def test_gpuhunt(self) -> None:
        assert _quotes(GPUHUNT) == (
            "gpuhunt",
            {"aws:p5.48xlarge:us-east-1:on_demand": 50, "aws:p5.48xlarge:us-east-1:spot": Decimal("18.5")},
        )

    @pytest.mark.parametrize("payload", [KARPENTER, KARPENTER["prices"], json.dumps(KARPENTER)])
    def test_karpenter(self, payload: Any) -> None:
        name, prices = _quotes(payload)
        assert name == "karpenter"
        assert prices == {"aws:p5.48xlarge:us-east-1:on_demand": 50, "aws:p5.48xlarge:us-east-1:spot": Decimal("18.5")}

    def test_karpenter_without_kinds_is_on_demand(self) -> None:
        assert _quotes({"eastus": {"Standard_ND96isr_H100_v5": 98.32}}, "azure")[1] == {
            "azure:Standard_ND96isr_H100_v5:eastus:on_demand": Decimal("98.32")
        }

    def test_vantage_takes_linux_and_whole_prices_only(self) -> None:
        name, prices = _quotes(VANTAGE)
        assert name == "vantage"
        assert prices == {
            OFFER: 50,
            "aws:p5.48xlarge:us-east-1:reserved_1y_no_upfront": 35,
            "aws:p5.48xlarge:us-east-1:reserved_3y": 22,
        }

    def test_own_list_in_columns(self) -> None:
        text = "provider,instance,region,commitment,usd_per_hour\nown,rack-1,berlin,purchase,12.5\n"
        assert _quotes(text, None) == ("own", {"own:rack-1:berlin:purchase": Decimal("12.5")})

    def test_items_of_the_gpuhunt_package(self) -> None:
        @dataclass
        class Item:
            provider: str
            instance_name: str
            location: str
            price: float
            spot: bool

        items = [Item("lambdalabs", "gpu_8x_h100_sxm5", "us-east-1", 23.92, False), Item("aws", "p5", "eu", 1.5, True)]
        assert _quotes(gpuhunt_list(items), None)[1] == {
            "lambda:gpu_8x_h100_sxm5:us-east-1:on_demand": Decimal("23.92"),
            "aws:p5:eu:spot": Decimal("1.5"),
        }

    @pytest.mark.parametrize(
        "payload",
        [
            "", "hello", "a,b\n1,2\n", "{not json", {}, [], 7, None, [1, 2], {"us": 5},
            f"offer,usd_per_hour\n{OFFER},-5\n", f"offer,usd_per_hour\n{OFFER},cheap\n",
            "offer,usd_per_hour\naws:p5.48xlarge,5\n", "offer,usd_per_hour\naws:p5:us:lease,5\n",
            {"us": {"on_demand": 5}}, "offer,usd_per_hour\n" + "x" * 200_000 + ",5\n", "[" * 100_000,
        ],
    )  # fmt: skip
    def test_what_is_no_price_list_is_refused(self, payload: Any) -> None:
        with pytest.raises(InvalidFieldsError) as refused:
            read_quotes(payload, "auto", "aws")
        assert refused.value.field_errors[0].pointer == "/payload"

    def test_whose_prices_must_be_said(self) -> None:
        with pytest.raises(InvalidFieldsError) as refused:
            read_quotes(SKYPILOT, "auto", None)
        assert refused.value.field_errors[0].pointer == "/provider"

    def test_a_stated_format_must_fit(self) -> None:
        with pytest.raises(InvalidFieldsError):
            read_quotes(KARPENTER, "skypilot", "aws")


class TestImport:
    def test_appends_reports_and_skips(self, client: TestClient) -> None:
        before = client.get(f"/v1/offers/{OFFER}").json()["price"]
        answer = client.post(URL, json=_body(SKYPILOT))
        assert answer.status_code == 200, answer.text
        report = answer.json()
        assert report["format"] == "skypilot"
        assert report["quotes"] == 4
        assert report["appended"] == len(report["changes"]) == 3
        assert [s["count"] for s in report["skipped"]] == [1]
        change = next(c for c in report["changes"] if c["offer"] == OFFER)
        assert change["usd_per_hour_before"] == before["usd_per_hour"]
        after = client.get(f"/v1/offers/{OFFER}").json()["price"]
        assert after["usd_per_hour"] == "50.000000"
        assert after["source"] == "a test"
        assert after["confidence"] == "medium"
        assert after["valid_from"] == "2026-11-20T00:00:00Z"

    def test_a_new_region_becomes_an_offer_of_the_same_node(self, client: TestClient) -> None:
        text = "offer,usd_per_hour\naws:p5.48xlarge:mars-north-1:on_demand,70\n"
        report = client.post(URL, json=_body(text)).json()
        assert report["new_offers"] == 1
        offer = client.get("/v1/offers/aws:p5.48xlarge:mars-north-1:on_demand").json()
        assert offer["node"] == client.get(f"/v1/offers/{OFFER}").json()["node"]
        assert offer["origin"] == "import"

    def test_twice_changes_nothing(self, client: TestClient) -> None:
        client.post(URL, json=_body(KARPENTER))
        report = client.post(URL, json=_body(KARPENTER)).json()
        assert (report["appended"], report["unchanged"], report["conflicts"]) == (0, 2, [])

    def test_another_price_for_the_same_instant_is_a_conflict_until_it_is_a_correction(
        self, client: TestClient
    ) -> None:
        client.post(URL, json=_body(OWN))
        other = OWN.replace("50.0", "49.0")
        report = client.post(URL, json=_body(other)).json()
        assert [c["offer"] for c in report["conflicts"]] == [OFFER]
        assert report["appended"] == 0
        assert client.get(f"/v1/offers/{OFFER}").json()["price"]["usd_per_hour"] == "50.000000"
        assert client.post(URL, json=_body(other, correction=True)).json()["appended"] == 1
        assert client.get(f"/v1/offers/{OFFER}").json()["price"]["usd_per_hour"] == "49.000000"

    def test_what_was_believed_before_a_correction_stays_answerable(self, client: TestClient, clock: Any) -> None:
        client.post(URL, json=_body(OWN))
        believed_at = clock().isoformat()
        clock.advance(hours=1)
        client.post(URL, json=_body(OWN.replace("50.0", "49.0"), correction=True))
        as_of = {"price_as_of": "2026-11-20T12:00:00Z"}
        now = client.get(f"/v1/offers/{OFFER}", params=as_of).json()["price"]["usd_per_hour"]
        then = client.get(f"/v1/offers/{OFFER}", params=as_of | {"believed_at": believed_at}).json()["price"]
        assert (now, then["usd_per_hour"]) == ("49.000000", "50.000000")

    def test_prices_before_the_import_stay_what_they_were(self, client: TestClient) -> None:
        old = client.get(f"/v1/offers/{OFFER}", params={"price_as_of": "2026-10-01T00:00:00Z"}).json()["price"]
        client.post(URL, json=_body(OWN))
        again = client.get(f"/v1/offers/{OFFER}", params={"price_as_of": "2026-10-01T00:00:00Z"}).json()["price"]
        assert again == old

    def test_names_that_no_offer_can_have_are_left_out(self, client: TestClient) -> None:
        payload = {"us east": {"p5.48xlarge": 5}, "r" * 200: {"p5.48xlarge": 5}}
        report = client.post(URL, json=_body(payload)).json()
        assert (report["appended"], report["skipped"][0]["count"]) == (0, 2)

    def test_a_dry_run_stores_nothing(self, client: TestClient) -> None:
        before = client.get(f"/v1/offers/{OFFER}").json()
        report = client.post(URL, json=_body(SKYPILOT, dry_run=True)).json()
        assert report["appended"] == 0
        assert len(report["changes"]) == 3
        assert client.get(f"/v1/offers/{OFFER}").json() == before

    def test_unreadable_lists_store_nothing(self, client: TestClient) -> None:
        answer = client.post(URL, json=_body(f"offer,usd_per_hour\n{OFFER},50\n{OFFER},oops\n"))
        assert answer.status_code == 422
        assert "line 3" in answer.json()["errors"][0]["detail"]
        assert client.get(f"/v1/offers/{OFFER}").json()["price"]["usd_per_hour"] != "50.000000"

    @pytest.mark.parametrize(("role", "status"), [(None, 401), ("reader", 403), ("agent", 403), ("editor", 200)])
    def test_editors_only(
        self, client: TestClient, with_role: Callable[[str], dict[str, str]], role: str | None, status: int
    ) -> None:
        with_role("editor")
        headers = with_role(role) if role else {}
        assert client.post(URL, json=_body(OWN, dry_run=True), headers=headers).status_code == status


class TestTouched:
    def _touched(self, client: TestClient, app: FastAPI, text: str) -> dict[str, dict[str, Any]]:
        database = app.state.database
        elsewhere = changed(RECOMMENDATION | {"limits": {"providers": ["gcp"]}}, "workloads/0/name", "chat")
        store_recommendation(database, "rec_plan", RESULT)
        store_recommendation(database, "rec_infeasible", INFEASIBLE)
        store_recommendation(database, "rec_elsewhere", INFEASIBLE, elsewhere)
        answer = client.post(URL, json=_body(text))
        assert answer.status_code == 200, answer.text
        return {t["recommendation"]: t for t in answer.json()["recommendations"]}

    def test_a_plan_whose_price_moved_is_answered_differently(self, client: TestClient, app: FastAPI) -> None:
        touched = self._touched(client, app, OWN)
        plan = touched["rec_plan"]
        assert plan["effect"] == "price_changes"
        assert plan["answered_differently"] is True
        assert plan["offers"] == [OFFER]
        assert (plan["usd_per_hour_stored"], plan["plan_usd_per_hour_now"]) == ("110.080000", "100.000000")

    def test_a_cheaper_offer_may_change_others_within_their_limits(self, client: TestClient, app: FastAPI) -> None:
        touched = self._touched(client, app, "offer,usd_per_hour\naws:p5.48xlarge:us-east-2:on_demand,0.5\n")
        assert touched["rec_plan"]["effect"] == "cheaper_offer"
        assert touched["rec_plan"]["answered_differently"] is None
        assert "rec_infeasible" in touched
        assert "rec_elsewhere" not in touched

    def test_a_dearer_offer_outside_the_plan_touches_nothing(self, client: TestClient, app: FastAPI) -> None:
        offer = "aws:p5.48xlarge:us-east-2:on_demand"
        self._touched(client, app, f"offer,usd_per_hour\n{offer},5\n")
        dearer = _body(f"offer,usd_per_hour\n{offer},999\n", correction=True)
        report = client.post(URL, json=dearer).json()
        assert [c["offer"] for c in report["changes"]] == [offer]
        assert report["recommendations"] == []

    def test_planning_again_tells_what_the_answer_is_now(self, client: TestClient) -> None:
        limits = {"providers": ["aws"], "devices": ["h100-sxm"], "regions": ["us-east-1", "us-east-2"]}
        made = client.post("/v1/recommendations", json=RECOMMENDATION | {"limits": limits}).json()
        text = "offer,usd_per_hour\naws:p5.48xlarge:us-east-2:on_demand,0.5\n"
        report = client.post(URL, json=_body(text, replan=True)).json()
        touched = next(t for t in report["recommendations"] if t["recommendation"] == made["id"])
        assert touched["effect"] == "cheaper_offer"
        assert touched["answered_differently"] is True
        assert Decimal(touched["replanned_usd_per_hour"]) < Decimal(touched["usd_per_hour_stored"])


class TestCommand:
    """The command asks the application in this process when no service listens."""

    @pytest.fixture(autouse=True)
    def own_database(self, seeded_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CLUSTERWRIGHT_DATABASE_URL", seeded_url)
        monkeypatch.setattr("service.cli.client.DEFAULT_URL", "http://127.0.0.1:9")  # nothing listens on discard

    def test_imports_and_reports(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file = tmp_path / "aws.csv"
        file.write_text(SKYPILOT)
        options = ["--provider", "aws", "--valid-from", "2026-11-20T00:00:00Z", "--source", "a test"]
        assert main(["prices", "import", str(file), *options, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["appended"] == 3
        assert main(["prices", "import", str(file), *options]) == 0
        assert "3 unchanged" in capsys.readouterr().out

    def test_bad_input_has_its_own_exit_code(self, tmp_path: Path) -> None:
        options = ["--valid-from", "2026-11-20T00:00:00Z", "--source", "a test"]
        assert main(["prices", "import", str(tmp_path / "none.csv"), *options]) == 2
        assert main(["prices", "import", *options]) == 2
        (tmp_path / "odd.csv").write_text("a,b\n1,2\n")
        assert main(["prices", "import", str(tmp_path / "odd.csv"), *options]) == 2
