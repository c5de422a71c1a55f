"""Every accelerator that the project's background documents name has a row, if only to say what nobody published."""

import pytest

from catalog.read import read_catalog

CATALOG = read_catalog()

NAMED = {
    # data-centre GPUs
    "V100": ["v100-pcie-16", "v100-pcie-32", "v100-sxm2-16", "v100-sxm2-32"],
    "A100": ["a100-pcie-40", "a100-sxm-40", "a100-pcie-80", "a100-sxm-80"],
    "L40S": ["l40s"],
    "H100": ["h100-sxm", "h100-pcie", "h100-nvl"],
    "H200": ["h200-sxm", "h200-nvl"],
    "B100": ["b100-sxm"],
    "B200": ["b200-sxm"],
    "B300 (Blackwell Ultra)": ["b300-sxm"],
    "GB200, NVL72": ["gb200-nvl72"],
    "Rubin": ["vr200-nvl72"],
    "MI300X": ["mi300x"],
    "MI325X": ["mi325x"],
    "MI350X": ["mi350x"],
    "AMD RDNA": ["rx-7900-xtx"],
    # workstation and consumer GPUs
    "GTX 580": ["gtx-580"],
    "RTX 20xx": ["rtx-2080-ti"],
    "RTX 4090": ["rtx-4090"],
    "RTX 5090": ["rtx-5090"],
    "RTX A6000": ["rtx-a6000"],
    # TPUs
    "the original TPU": ["tpu-v1"],
    "TPU v3": ["tpu-v3"],
    "TPU v4": ["tpu-v4"],
    "TPU v5e": ["tpu-v5e"],
    "TPU v5p": ["tpu-v5p"],
    "TPU v6e (Trillium)": ["tpu-v6e"],
    "TPU v7 (Ironwood)": ["tpu-v7"],
    # other data-centre accelerators
    "Gaudi 2": ["gaudi2"],
    "Gaudi 3": ["gaudi3"],
    "Trainium": ["trainium1", "trainium2", "trainium3"],
    "Inferentia": ["inferentia2"],
    "MTIA": ["mtia-v2"],
    "Maia": ["maia-100", "maia-200"],
    "OpenAI (rumoured)": ["openai-custom"],
    "Cerebras": ["cerebras-wse2", "cerebras-wse3"],
    "Groq LPU": ["groq-lpu-v1", "groq-lpu-next"],
    "SambaNova": ["sn40l"],
    "Grayskull": ["grayskull-e150"],
    "Wormhole": ["n150", "n300"],
    "Blackhole": ["p100a", "p150a"],
    "Esperanto": ["et-soc-1"],
    "Etched Sohu": ["sohu"],
    # processors, Apple silicon, edge and client
    "CPU with AMX (Xeon)": ["xeon-8480", "xeon-6980p"],
    "Epyc": ["epyc-9654", "epyc-9965"],
    "Threadripper 7960X": ["threadripper-7960x"],
    "M2 Max": ["m2-max"],
    "M4 Max": ["m4-max"],
    "Mac Studio, M-series Ultra": ["m2-ultra", "m3-ultra"],
    "Jetson Nano": ["jetson-nano"],
    "Jetson Orin": ["jetson-orin-nano", "jetson-orin-nx-16", "jetson-agx-orin-64"],
    "Apple Neural Engine": ["ane-m4"],
    "Intel's NPU": ["intel-npu-4"],
    "Qualcomm Hexagon": ["hexagon-x-elite"],
    "Google Edge TPU (Coral)": ["coral-edge-tpu"],
    "MediaTek APU": ["mediatek-apu"],
    # research, photonic, analogue, in-memory, FPGA
    "Loihi 2": ["loihi-2"],
    "NorthPole": ["northpole"],
    "Mythic": ["mythic-amp"],
    "Lightmatter": ["lightmatter-envise"],
    "Lightelligence": ["lightelligence-pace"],
    "Rain AI": ["rain-ai"],
    "HBM-PIM": ["hbm-pim"],
    "SK hynix AiM": ["skhynix-aimx"],
    "Alveo": ["fpga-alveo"],
    "Pynq": ["fpga-pynq"],
    "DE10-Nano": ["fpga-de10-nano"],
    "ULX3S": ["fpga-ulx3s"],
}

UNPUBLISHED = ["sohu", "openai-custom", "rain-ai", "lightmatter-envise", "lightelligence-pace", "groq-lpu-next"]
"""Named and announced, with neither bandwidth nor a matrix rate published."""


@pytest.mark.parametrize("name", NAMED)
def test_a_named_accelerator_has_its_rows(name: str) -> None:
    assert set(NAMED[name]) <= set(CATALOG.devices)


@pytest.mark.parametrize("device_id", UNPUBLISHED)
def test_what_nobody_published_is_listed_not_guessed(device_id: str) -> None:
    device = CATALOG.devices[device_id]
    assert device.status == "announced"
    assert {"memory_bandwidth_gb_per_s", "dense_bf16_tflop_per_s"} <= set(device.missing)
    rates = [getattr(device, field) for field in type(device).model_fields if field.startswith(("dense_", "sparse_"))]
    assert not any(rates)


def test_nothing_that_is_offered_lacks_what_planning_needs() -> None:
    offered = {CATALOG.nodes[offer.node].device for offer in CATALOG.offers.values()}
    for device_id in offered:
        assert not {"memory_gib", "memory_bandwidth_gb_per_s", "dense_bf16_tflop_per_s"} & set(
            CATALOG.devices[device_id].missing
        ), device_id
