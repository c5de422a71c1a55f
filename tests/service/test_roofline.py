"""``roofline`` of an estimate: the device's published roof, and the operators of its steps under it."""

from fastapi.testclient import TestClient

from tests.service.bodies import ESTIMATE


def test_the_roof_is_the_datasheets_and_operators_are_under_it(client: TestClient) -> None:
    device = client.get("/v1/devices/h200-sxm").json()
    (one,) = client.post("/v1/estimates", json={"estimates": [ESTIMATE]}).json()["estimates"]
    roof = one["roofline"]
    assert roof["peak_tflop_per_s"] == device["dense_fp8_tflop_per_s"]
    assert roof["memory_bandwidth_gb_per_s"] == device["memory_bandwidth_gb_per_s"]
    phases = {(o["phase"], o["operator"]) for o in roof["operators"]}
    assert {("prefill", "prefill_attention"), ("decode", "decode_attention"), ("decode", "dense_products")} <= phases
    assert ("decode", "prefill_attention") not in phases
    assert all(0 < o["roof_fraction"] <= 1 for o in roof["operators"])
    by_place = {(o["phase"], o["operator"]): o for o in roof["operators"]}
    ridge = roof["ridge_flop_per_byte"]
    assert (
        by_place["decode", "dense_products"]["flop_per_byte"]
        < ridge
        < by_place["prefill", "dense_products"]["flop_per_byte"]
    )
    terms = {t["term"]: t["ms"] for t in one["step"]}
    assert by_place["decode", "decode_attention"]["ms"] == terms["attention_kv_read"]
