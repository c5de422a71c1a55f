"""Laws that the training model must keep, whatever its constants."""

from dataclasses import replace

import numpy as np
import pytest

from catalog.read_training import read_training
from service.training.fitting import shapes_of
from service.training.inputs import TrainingModel, prepare, training_device, training_model
from solver.errors import UnsupportedError
from solver.training.constants import TrainingConstants, chosen_rows, resolve
from solver.training.estimate import chosen_position, estimate_training, model_flop_per_token
from solver.training.layouts import LayoutSpace, checked_degrees, enumerate_layouts
from solver.training.memory import least_recompute, memory_parts, peak_bytes
from solver.training.shape import training_shape
from solver.training.step import reference_pass_s, step_s, step_terms, tokens_per_s_per_device
from solver.training.work import Method, Run, Sharding, TrainingDevice, one_layout
from tests.llm_shapes import shape
from tests.whole_catalog import whole_catalog

DEVICE = TrainingDevice("d", "hopper", 85e9, 3.35e12, 989e12, 989e12, 450e9, 8, 50e9)


@pytest.fixture(scope="module")
def model() -> TrainingModel:
    return training_model()


def run_of(llm: str = "llama-3.1-8b", batch: int = 64, sequence: int = 4096) -> Run:
    return Run(training_shape(shape(llm), sequence), DEVICE, "pretrain", sequence, batch)


def constants_of(model: TrainingModel) -> TrainingConstants:
    return resolve(chosen_rows(model.priors, device="d", family="hopper", stacks=("megatron",), precision="bf16"))


class TestStep:
    def test_terms_sum_to_the_step_and_none_is_negative(self, model: TrainingModel) -> None:
        work = run_of().work(one_layout(tensor_parallel=2, pipeline_parallel=2, data_parallel=4))
        terms = step_terms(work, constants_of(model))
        assert sum(float(value[0]) for value in terms.values()) == pytest.approx(
            float(step_s(work, constants_of(model))[0])
        )
        assert all(float(np.min(value)) >= 0.0 for value in terms.values())

    def test_interleaving_shortens_the_bubble(self, model: TrainingModel) -> None:
        plain, interleaved = (
            step_terms(
                run_of().work(one_layout(pipeline_parallel=4, virtual_pipeline=v, data_parallel=2)), constants_of(model)
            )
            for v in (1, 4)
        )
        assert float(interleaved["pipeline_bubble"][0]) < float(plain["pipeline_bubble"][0])

    def test_recomputing_costs_time_and_saves_memory(self, model: TrainingModel) -> None:
        kept, again = (run_of().work(one_layout(data_parallel=8, recompute=r)) for r in ("none", "full"))
        c = constants_of(model)
        assert float(step_s(again, c)[0]) > float(step_s(kept, c)[0])
        assert float(peak_bytes(again, c)[0]) < float(peak_bytes(kept, c)[0])

    def test_no_layout_beats_the_datasheet(self, model: TrainingModel) -> None:
        run = run_of()
        layouts = enumerate_layouts(
            run.shape, 8, 64, LayoutSpace({}, ("tensor", "pipeline", "context"), "none", ("zero1",))
        )
        rate = tokens_per_s_per_device(run.work(layouts), constants_of(model))
        assert float(rate.max()) < DEVICE.flop_per_s / model_flop_per_token(run.shape)


class TestMemory:
    @pytest.mark.parametrize("by_layer", [True, False])
    def test_no_more_layers_are_recomputed_than_memory_asks(self, model: TrainingModel, by_layer: bool) -> None:
        run, c = run_of("llama-3.1-70b", batch=64, sequence=8192), constants_of(model)
        layouts = enumerate_layouts(
            run.shape, 64, 64, LayoutSpace({}, ("tensor", "pipeline", "context"), None, ("zero1", "zero3"))
        )
        work = run.work(layouts)
        share = least_recompute(work, c, by_layer)
        layers = np.round(work.layers / work.pipeline_parallel) if by_layer else np.ones(1)

        def peak(tried: np.ndarray) -> np.ndarray:
            return peak_bytes(replace(work, recompute_full=tried), c)

        some = (share > 0.0) & (share < 1.0)
        assert some.any() == by_layer
        assert (peak(share)[some] <= DEVICE.memory_bytes * (1.0 + 1e-9)).all()
        one_less = np.where(share > 0.0, share - 1.0 / layers, 0.0)
        needed = (share > 0.0) & (peak(share) <= DEVICE.memory_bytes)
        assert (peak(np.maximum(one_less, 0.0))[needed] > DEVICE.memory_bytes).all()

    def test_states_are_eighteen_bytes_a_weight_unsharded(self, model: TrainingModel) -> None:
        parts = memory_parts(run_of().work(one_layout()), constants_of(model))
        weights = run_of().shape.total_weights
        states = sum(float(parts[name][0]) for name in ("weights", "gradients", "optimizer"))
        assert states / weights == pytest.approx(18.0, rel=0.01)

    @pytest.mark.parametrize("sharding", ["zero1", "zero3"])
    def test_sharding_divides_what_it_says(self, model: TrainingModel, sharding: Sharding) -> None:
        parts = memory_parts(run_of().work(one_layout(data_parallel=8, sharding=sharding)), constants_of(model))
        whole = memory_parts(run_of().work(one_layout()), constants_of(model))
        assert float(parts["optimizer"][0]) == pytest.approx(float(whole["optimizer"][0]) / 8)
        assert (float(parts["weights"][0]) < float(whole["weights"][0]) / 4) == (sharding == "zero3")


RULES_OF_THUMB_GB = [
    ("llama-2-7b", "lora", 16.0), ("llama-2-13b", "lora", 32.0 * 13 / 14), ("llama-3.1-70b", "lora", 160.0),
    ("llama-2-7b", "qlora", 6.0), ("llama-2-13b", "qlora", 12.0 * 13 / 14), ("llama-3.1-70b", "qlora", 48.0),
]  # fmt: skip
"""Hardware requirements in the README of hiyouga/LLaMA-Factory, as remembered; its 14B in proportion for 13B."""


class TestAdapters:
    @pytest.mark.parametrize(("llm", "method", "gigabytes"), RULES_OF_THUMB_GB)
    def test_least_memory_is_what_public_tables_say(
        self, model: TrainingModel, llm: str, method: Method, gigabytes: float
    ) -> None:
        shapes = shapes_of(whole_catalog())
        device = training_device(shapes.devices["b200-sxm"], shapes.nodes, "bf16", model)
        trained = prepare(
            model, shapes.llms[llm], device, devices=1, method=method, precision="bf16", sequence_tokens=512,
            global_batch_sequences=1, stack=None, stated={"micro_batch_sequences": 1}, recompute="full", sharding="zero1",
        )  # fmt: skip
        found = estimate_training(trained.run, trained.constants, 1, trained.layout_space, batch_stated=True)
        assert found.chosen.peak_bytes / 1e9 == pytest.approx(gigabytes, rel=0.15)


class TestPreferences:
    @pytest.mark.parametrize("method", ["full", "lora"])
    def test_a_reference_is_one_more_forward_pass(self, model: TrainingModel, method: Method) -> None:
        plain, c = replace(run_of(), method=method, adapter_weights=4e7), constants_of(model)
        layout = one_layout(data_parallel=8, micro_batch_sequences=2)
        alone, beside = (replace(plain, reference=r).work(layout) for r in (None, "computed"))
        terms, more = step_terms(alone, c), step_terms(beside, c)
        products = float(terms["dense_products"][0] + terms["output_head"][0])
        forward = products / (3.0 if method == "full" else 2.0)
        reference = float(more["reference_model"][0])
        assert forward < reference < 1.5 * forward, "attention and what passes over memory come to it"
        assert float(terms["reference_model"][0]) == 0.0
        assert float(step_s(beside, c)[0] - step_s(alone, c)[0]) == pytest.approx(float(reference_pass_s(alone, c)[0]))

    def test_adapters_need_no_second_model_and_all_weights_do(self, model: TrainingModel) -> None:
        c, layout = constants_of(model), one_layout(micro_batch_sequences=2)
        for method, copies in (("full", 1.0), ("lora", 0.0)):
            run = replace(run_of(), method=method, adapter_weights=4e7)
            alone, beside, before = (
                memory_parts(replace(run, reference=r).work(layout), c) for r in (None, "computed", "precomputed")
            )
            held = float(beside["weights"][0] - alone["weights"][0])
            assert held == pytest.approx(copies * 2.0 * run.shape.total_weights, rel=1e-6, abs=1.0)
            assert float(beside["logits"][0]) > float(alone["logits"][0])
            assert {name: float(v[0]) for name, v in before.items()} == {name: float(v[0]) for name, v in alone.items()}

    def test_pairs_are_never_parted(self) -> None:
        shape = run_of().shape
        found = enumerate_layouts(shape, 8, 64, LayoutSpace({}, (), "none", ("zero1",), sequences_together=2))
        assert (found.micro_batch_sequences % 2 == 0).all()
        for stated, batch in (({}, 63), ({"micro_batch_sequences": 1}, 64)):
            with pytest.raises(UnsupportedError, match="pair"):
                enumerate_layouts(shape, 1, batch, LayoutSpace(stated, (), "none", ("zero1",), sequences_together=2))


class TestLayouts:
    def test_products_are_the_devices_and_batches_divide(self) -> None:
        run = run_of("qwen3-30b-a3b")
        axes = ("tensor", "pipeline", "context", "expert")
        found = enumerate_layouts(run.shape, 32, 64, LayoutSpace({}, axes, None, ("zero1",)))
        product = found.tensor_parallel * found.pipeline_parallel * found.context_parallel * found.data_parallel
        assert (product == 32).all()
        assert (64 % (found.data_parallel * found.micro_batch_sequences) == 0).all()
        assert (run.shape.heads % found.tensor_parallel == 0).all()
        assert (run.shape.experts % found.expert_parallel == 0).all()

    def test_the_chosen_one_fits_and_none_that_fits_is_a_hundredth_faster(self, model: TrainingModel) -> None:
        run = run_of(batch=128)
        layouts = enumerate_layouts(run.shape, 16, 128, LayoutSpace({}, ("tensor", "pipeline"), "full", ("zero1",)))
        work, c = run.work(layouts), constants_of(model)
        seconds, peaks = step_s(work, c), peak_bytes(work, c)
        best = chosen_position(layouts, seconds, peaks, DEVICE.memory_bytes)
        assert peaks[best] <= DEVICE.memory_bytes
        assert seconds[best] <= seconds[peaks <= DEVICE.memory_bytes].min() * 1.01

    def test_a_micro_batch_divides_a_replicas_share_unless_the_software_takes_the_rest(self) -> None:
        shape, stated = run_of().shape, {"micro_batch_sequences": 6}
        found = enumerate_layouts(shape, 8, 48, LayoutSpace(stated, ("tensor",), None, ("zero1",)))
        assert (48 / found.data_parallel % 6 == 0).all()
        with pytest.raises(UnsupportedError, match="64 sequences a step in micro-batches of 6"):
            enumerate_layouts(shape, 8, 64, LayoutSpace(stated, ("tensor",), None, ("zero1",)))
        assert len(enumerate_layouts(shape, 8, 64, LayoutSpace(stated, ("tensor",), None, ("zero1",), uneven=True)))

    def test_degrees_that_make_more_devices_than_there_are_say_so(self) -> None:
        with pytest.raises(UnsupportedError, match="the degrees make 32 devices, 8 are given"):
            checked_degrees(run_of().shape, 8, 64, {"tensor_parallel": 4, "data_parallel": 8})

    def test_heads_are_a_limit(self) -> None:
        with pytest.raises(UnsupportedError, match="32 heads"):
            checked_degrees(run_of().shape, 64, 64, {"tensor_parallel": 64})


class TestCatalog:
    def test_runs_name_models_devices_and_stacks_that_are_known(self) -> None:
        found = read_training()
        assert len(found.runs) > 500
        assert all(found.stack_named(run.stack) is not None for run in found.runs)

    def test_fitted_constants_stay_near_what_can_be(self, model: TrainingModel) -> None:
        shares = [row for name, rows in model.priors.items() if name.startswith("gemm_efficiency") for row in rows]
        assert all(0.0 < row.value < 1.0 for row in shares)
