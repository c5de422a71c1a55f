"""Images: tokens and patches by resolution, the encoder's work against counting, what a prompt waits for it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.engine.profiles import VLLM_GRAPHS
from solver.errors import InvalidInputError
from solver.layout import Layout
from solver.lengths import fixed_lengths
from solver.llm_shape import LlmShape
from solver.memory.fits import engine_memory, memory_plan
from solver.memory.table import memory_table
from solver.precision import Precision
from solver.replay.one_stream import replay
from solver.step.vision_terms import image_encoding_s, image_launch_beyond_s, image_launch_s, image_work
from solver.vision import Images, VisionEncoder
from solver.workload import EngineSettings, Load, Traffic
from tests.llm_shapes import llm_rows, shape
from tests.solver.samples import configuration, constants

SEEING = sorted(name for name, row in llm_rows().items() if row.vision is not None)


def seeing(llm: str, images: int = 1, side: int = 1024, text: int = 200) -> LlmShape:
    found = shape(llm)
    encoder = found.vision
    assert encoder is not None
    tokens = encoder.image_tokens(side, side)
    prompt = float(text + images * tokens)
    tiles = encoder.image_tiles(side, side)
    carried = Images(images, encoder.image_patches(side, side), tokens, side * side / 1e6, prompt, tiles)
    return replace(found, images=carried)


class TestTokens:
    @pytest.mark.parametrize(
        ("llm", "size", "tokens"),
        [
            # Worked by hand from the processors' rules: whole units of 32 or 28 pixels, or a number that the config fixes.
            ("qwen3-vl-8b", (1024, 1024), 1024),
            ("qwen3-vl-8b", (1920, 1080), 60 * 34),
            ("qwen3-vl-8b", (64, 64), 64),
            ("qwen2.5-vl-7b", (1024, 1024), 37 * 37),
            ("qwen2.5-vl-7b", (448, 448), 256),
            ("gemma-3-4b", (3000, 17), 256),
            ("gemma-4-31b", (1000, 1000), 256),
            # Tiles of 336 pixels and the whole once more: 144 tokens each and one after it.
            ("llama-4-scout", (336, 336), 145),
            ("llama-4-scout", (100, 50), 145),
            ("llama-4-scout", (1024, 768), (4 * 3 + 1) * 145),
            ("llama-4-scout", (2000, 1500), (4 * 3 + 1) * 145),
            ("llama-4-maverick", (5000, 400), (13 * 1 + 1) * 145),
            ("llama-4-maverick", (6000, 6000), (4 * 4 + 1) * 145),
        ],
    )
    def test_as_worked_by_hand(self, llm: str, size: tuple[int, int], tokens: int) -> None:
        encoder = shape(llm).vision
        assert encoder is not None
        assert encoder.image_tokens(*size) == tokens

    @given(st.sampled_from(SEEING), st.integers(16, 8_000), st.integers(16, 8_000))
    @settings(max_examples=150, deadline=None)
    def test_sizes_stay_within_the_limits(self, llm: str, width: int, height: int) -> None:
        encoder = shape(llm).vision
        assert encoder is not None
        if max(width, height) > 200 * min(width, height):
            return
        wide, high = encoder.resized(width, height)
        unit = encoder.unit_px
        assert min(wide, high) >= 1
        if encoder.most_px:
            assert wide * high * unit * unit <= max(encoder.most_px, max(wide, high) * unit * unit)
        seen = wide * high * encoder.merge**2
        tiles = encoder.image_tiles(width, height)
        if encoder.most_tiles:
            assert tiles <= encoder.most_tiles + 1
            seen = seen * tiles // max(1, tiles - 1)
        assert encoder.image_patches(width, height) == seen
        assert encoder.image_patches(width, height) <= encoder.most_patches or not encoder.image_px

    @given(st.integers(1, 9_000), st.integers(1, 9_000), st.sampled_from([1, 2, 5, 16]), st.sampled_from([112, 336]))
    @settings(max_examples=300, deadline=None)
    def test_tiles_are_those_of_the_published_rule(self, width: int, height: int, most: int, side: int) -> None:
        """Every canvas tried: the least enlargement, else the least reduction, and then the smallest area."""
        if max(width, height) > 200 * min(width, height):
            return
        encoder = VisionEncoder(2, 64, 2, 128, False, 14, 2, image_px=side, most_tiles=most)
        scales: dict[tuple[int, int], Fraction] = {}
        for count in range(most, 0, -1):
            for down in range(1, count + 1):
                if count % down == 0:
                    across = count // down
                    scales[across, down] = min(Fraction(across * side, width), Fraction(down * side, height))
        larger = [scale for scale in scales.values() if scale >= 1]
        chosen = min(larger) if larger else max(scales.values())
        area = min(across * down for (across, down), scale in scales.items() if scale == chosen)
        assert encoder.image_tiles(width, height) == (area + 1 if area > 1 else 1)
        assert encoder.image_tokens(width, height) == encoder.image_tiles(width, height) * ((side // 28) ** 2 + 1)

    @pytest.mark.parametrize("size", [(0, 10), (10_000, 10), (-5, 5)])
    def test_what_no_encoder_takes_is_refused(self, size: tuple[int, int]) -> None:
        with pytest.raises(InvalidInputError):
            VisionEncoder(2, 64, 2, 128, False, 16, 2, least_px=1024, most_px=10**6).resized(*size)

    def test_whole_models_have_as_many_parameters_as_published(self) -> None:
        """Qwen3-VL: 2.13, 4.44 and 8.77 billion in the headers of the checkpoints (rounded on the model cards)."""
        for llm, billions in (("qwen3-vl-2b", 2.13), ("qwen3-vl-4b", 4.44), ("qwen3-vl-8b", 8.77)):
            found = shape(llm)
            assert found.vision is not None
            assert (found.total_weights + found.vision.weights) / 1e9 == pytest.approx(billions, abs=0.01)


class TestTime:
    @pytest.mark.parametrize("llm", ["qwen3-vl-8b", "gemma-3-4b"])
    def test_work_is_that_of_the_matrices(self, llm: str) -> None:
        found = seeing(llm)
        assert found.vision is not None
        assert found.images is not None
        e, patches, tokens = found.vision, found.images.patches, found.images.tokens
        width = e.hidden * (1 if e.tokens else e.merge**2)
        flops = 2 * patches * e.layers * (4 * e.hidden**2 + 2 * e.hidden * e.intermediate)
        flops += 4 * patches**2 * e.hidden * e.layers
        flops += 2 * tokens * width * (width + found.hidden) * (1 + e.extra_projectors)
        assert float(np.asarray(image_work(found, configuration(found).rates())[1])) == pytest.approx(flops)

    def test_windows_look_at_less(self) -> None:
        found = seeing("qwen2.5-vl-7b")
        assert found.vision is not None
        everywhere = replace(found, vision=replace(found.vision, window_patches=0))
        rates = configuration(found).rates()
        assert image_work(found, rates)[1] < 0.9 * image_work(everywhere, rates)[1]

    @pytest.mark.parametrize(("images", "side"), [(1, 512), (2, 1024), (4, 1536)])
    def test_a_prompt_waits_for_its_images(self, images: int, side: int) -> None:
        """In simulation: what is added to the same prompt of text is the encoder's time and the host's."""
        found = seeing("qwen3-vl-8b", images, side)
        assert found.images is not None
        tokens = round(found.images.prompt_tokens)
        traffic, load = Traffic(fixed_lengths(tokens), fixed_lengths(50)), Load("closed", concurrency=1, requests=5)
        times = []
        for one in (found, shape("qwen3-vl-8b")):
            deployed = configuration(one)
            times.append(replay(deployed, deployed.tables(), traffic, load).time_to_first_token_s["mean"])
        known = constants("h100-sxm")
        host = known.si("image_overhead_ms") + images * known.si("image_ingest_ms")
        host += images * found.images.megapixels * known.si("image_megapixel_ms")
        encoding = float(np.asarray(image_encoding_s(found, configuration(found).rates())))
        # At a clock that has not settled arithmetic may be faster by its headroom.
        assert times[0] - times[1] == pytest.approx(host + encoding, rel=0.1)

    @given(st.integers(1, 6), st.sampled_from([128, 448, 1024]), st.integers(1, 8_000))
    @settings(max_examples=40, deadline=None)
    def test_an_encoder_is_launched_once_a_step(self, images: int, side: int, tokens: int) -> None:
        """Work of a step's images and what launching takes beyond it: the larger of the two, however many prompts share the step."""
        found = seeing("qwen3-vl-8b", images, side)
        assert found.images is not None
        rates = configuration(found).rates()
        work = float(np.asarray(image_work(found, rates)[0])) * tokens / found.images.prompt_tokens
        beyond, launch = (
            float(np.asarray(x)) for x in (image_launch_beyond_s(found, rates, tokens), image_launch_s(found, rates))
        )
        assert work + beyond == pytest.approx(max(work, launch))
        assert image_launch_beyond_s(shape("qwen3-vl-8b"), rates, tokens) == 0.0

    def test_small_images_are_encoded_together(self) -> None:
        """Eight at once are launched as one is: a step with them takes as much longer than one with their texts."""
        found = seeing("qwen3-vl-8b", 1, 128)
        assert found.images is not None
        one = round(found.images.prompt_tokens)
        looking, plain = configuration(found), configuration(shape("qwen3-vl-8b"))
        launch = float(np.asarray(image_launch_s(found, looking.rates())))
        each = float(np.asarray(image_work(found, looking.rates())[0]))
        for together in (1, 2, 8):
            beyond = looking.tables().mixed_s[together * one] - plain.tables().mixed_s[together * one]
            assert beyond + together * each == pytest.approx(launch)

    def test_tiles_look_at_themselves_alone(self) -> None:
        """An image of many tiles is the work of as many images of one."""
        whole, one = seeing("llama-4-scout", 1, 1344), seeing("llama-4-scout", 17, 336)
        assert whole.images is not None
        assert one.images is not None
        assert (whole.images.tiles, one.images.tiles) == (17, 1)
        rates = configuration(whole).rates()
        for a, b in zip(image_work(whole, rates), image_work(one, rates), strict=True):
            assert float(np.asarray(a)) == pytest.approx(float(np.asarray(b)))

    def test_parameters_of_llama_4s_encoder_are_as_listed(self) -> None:
        """A listing of Scout's modules: matrices of a layer, embeddings, the products that follow; biases and norms are below 0.1 %."""
        encoder = shape("llama-4-scout").vision
        assert encoder is not None
        layer = 4 * 1_982_464 + 2 * 7_929_856
        listed = 34 * layer + 812_416 + 827_904 + 1_408 + 23_068_672 + 16_777_216 + 20_971_520
        assert encoder.weights == pytest.approx(listed, rel=1e-4)
        assert shape("llama-4-maverick").vision == encoder

    def test_decoding_goes_on_as_for_text(self) -> None:
        found = seeing("qwen3-vl-8b")
        for plain, looked in zip(
            configuration(shape("qwen3-vl-8b")).tables().decode_s, configuration(found).tables().decode_s, strict=True
        ):
            assert plain == looked


class TestMemory:
    def test_the_table_of_many_deployments_says_the_same(self) -> None:
        memory, layout = engine_memory("h100", constants("h100-sxm").values_si(), VLLM_GRAPHS.sizes), Layout(2)
        chosen = EngineSettings(max_context_tokens=8192)
        for served in (seeing("qwen3-vl-8b"), shape("qwen3-vl-8b")):
            one = memory_plan(served, 80e9, Precision(), layout, chosen, memory)
            table = memory_table(
                served, [(Precision(), layout)], chosen, block_tokens=memory.block_tokens, pooled_cache=memory.pooled_cache
            )  # fmt: skip
            many = table.plans(np.array([0]), np.array([80e9]), [memory], np.array([0]))
            assert many.weights_bytes[0] == pytest.approx(one.weights_bytes)
            assert many.activations_bytes[0] == pytest.approx(one.activations_bytes)
            assert many.kv_cache_tokens[0] == one.kv_cache_tokens
