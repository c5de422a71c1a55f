"""Recurrent layers of vLLM 0.24.0 without the rest of a model: for ``tests.bench.recurrent_layers_on_a_device``.

The layers' own code is called, between the compiled pieces of a step as vLLM calls it, with stand-ins for weights, caches and the
metadata that its scheduler makes. Needs torch, Triton and vLLM; nothing is downloaded.
"""

import itertools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
import vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn as gdn_module
import vllm.model_executor.layers.mamba.mamba_mixer2 as mamba_module
from vllm.config.mamba import MambaConfig
from vllm.model_executor.layers.fla.ops.index import prepare_chunk_indices, prepare_chunk_offsets
from vllm.model_executor.layers.fla.ops.utils import FLA_CHUNK_SIZE
from vllm.model_executor.layers.mamba.ops import ssu_dispatch
from vllm.utils.torch_utils import _encode_layer_name
from vllm.v1.attention.backends.gdn_attn import GDNAttentionMetadata
from vllm.v1.attention.backends.mamba2_attn import Mamba2AttentionMetadata
from vllm.v1.attention.backends.utils import compute_causal_conv1d_metadata

DEVICE = torch.device("cuda")
BF16 = torch.bfloat16
KERNEL_WIDTH = 4
DELTA = {
    "qwen3.5-27b": {"key_heads": 16, "value_heads": 48, "dim": 128},
    "qwen3.5-35b-a3b": {"key_heads": 16, "value_heads": 32, "dim": 128},
}
STATE_SPACE = {"nemotron-3-nano": {"heads": 64, "head_dim": 64, "groups": 8, "state": 128, "chunk": 128}}
Call = Callable[[], Any]


class Current:
    """Stands for vLLM's forward context: which layer, which metadata."""

    layer: Any = None
    metadata: Any = None


def context() -> Any:
    return SimpleNamespace(
        attn_metadata={Current.layer.prefix: Current.metadata}, no_compile_layers={Current.layer.prefix: Current.layer}
    )


def stand_in() -> None:
    """vLLM's layers find their metadata here from now on, and decode state spaces with Triton's kernel, as vLLM does unless told."""
    gdn_module.get_forward_context = mamba_module.get_forward_context = context
    ssu_dispatch._mamba_ssu_backend = ssu_dispatch.TritonSSUBackend(MambaConfig())


class DeltaRule(torch.nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """vLLM's custom operation with Triton's kernels chosen."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return gdn_module.ChunkGatedDeltaRule.forward_native(self, *args, **kwargs)


def bare(cls: Any, prefix: str) -> Any:
    """A layer of that class without projections, configuration and the loading of weights."""
    layer = object.__new__(cls)
    torch.nn.Module.__init__(layer)
    layer.prefix, layer.activation = prefix, "silu"
    layer.tp_size, layer.tp_rank, layer.num_spec = 1, 0, 0
    return layer


def fixed(tensor: Any) -> Any:
    return torch.nn.Parameter(tensor, requires_grad=False)


def ints(values: Sequence[int]) -> Any:
    return torch.tensor(list(values), dtype=torch.int32, device=DEVICE)


def starts(lengths: Sequence[int]) -> list[int]:
    return [0, *itertools.accumulate(lengths)]


def convolution(channels: int, bias: bool) -> Any:
    made = torch.nn.Conv1d(channels, channels, KERNEL_WIDTH, groups=channels, bias=bias, device=DEVICE, dtype=BF16)
    return made.requires_grad_(False)


def kept_inputs(slots: int, channels: int) -> Any:
    tail = (channels, KERNEL_WIDTH - 1) if gdn_module.is_conv_state_dim_first() else (KERNEL_WIDTH - 1, channels)
    return torch.zeros(slots, *tail, dtype=BF16, device=DEVICE)


def delta_layer(name: str, slots: int) -> Any:
    layer, shape = bare(gdn_module.QwenGatedDeltaNetAttention, name), DELTA[name]
    keys, values, dim = shape["key_heads"], shape["value_heads"], shape["dim"]
    layer.num_k_heads, layer.num_v_heads, layer.head_k_dim, layer.head_v_dim = keys, values, dim, dim
    layer.key_dim, layer.value_dim = keys * dim, values * dim
    layer.conv_dim = 2 * layer.key_dim + layer.value_dim
    layer.conv1d = convolution(layer.conv_dim, bias=False)
    layer.A_log = fixed(torch.zeros(values, dtype=torch.float32, device=DEVICE))
    layer.dt_bias = fixed(torch.ones(values, dtype=BF16, device=DEVICE))
    layer.chunk_gated_delta_rule = DeltaRule()
    layer.gdn_prefill_backend = "triton"
    layer._prefill_kernels_warmed_up = layer.enable_packed_recurrent_decode = True
    layer.gqa_interleaved_layout = False
    state = torch.zeros(slots, values, dim, dim, dtype=torch.float32, device=DEVICE)
    layer.kv_cache = (kept_inputs(slots, layer.conv_dim), state)
    return layer


def conv_fields(locations: Any) -> dict[str, Any]:
    numbers, batch, offsets = compute_causal_conv1d_metadata(locations, device=DEVICE)
    return {"nums_dict": numbers, "batch_ptr": batch, "token_chunk_offset_ptr": offsets}


def delta_metadata(prompts: Sequence[int], decodes: int) -> Any:
    """As vLLM's builder makes it without drafting; those that decode come first."""
    lengths = [1] * decodes + list(prompts)
    slots = ints(range(1, len(lengths) + 1))
    fields: dict[str, Any] = {
        "num_prefills": len(prompts), "num_prefill_tokens": sum(prompts), "num_decodes": decodes,
        "num_decode_tokens": decodes, "num_spec_decodes": 0, "num_spec_decode_tokens": 0,
        "num_actual_tokens": sum(lengths), "non_spec_query_start_loc": ints(starts(lengths)),
        "non_spec_state_indices_tensor": slots,
    }  # fmt: skip
    if prompts:
        of_prompts = torch.tensor(starts(prompts), dtype=torch.int32)
        begun = torch.tensor([True] * decodes + [False] * len(prompts), device=DEVICE)
        fields |= {
            "has_initial_state": begun,
            "chunk_indices": prepare_chunk_indices(of_prompts, FLA_CHUNK_SIZE).to(DEVICE),
            "chunk_offsets": prepare_chunk_offsets(of_prompts, FLA_CHUNK_SIZE).to(DEVICE),
            "prefill_query_start_loc": of_prompts.to(DEVICE),
            "prefill_state_indices": slots[decodes:],
            "prefill_has_initial_state": begun[decodes:],
            **conv_fields(torch.tensor(starts(lengths), dtype=torch.int32)),
        }
    return GDNAttentionMetadata(**fields)


def delta_call(layer: Any, prompts: Sequence[int], decodes: int) -> Call:
    """The custom operation, on queries, keys and values as the projection leaves them."""
    tokens = sum(prompts) + decodes
    wide = torch.randn(tokens, layer.conv_dim + layer.value_dim, dtype=BF16, device=DEVICE) * 0.5
    mixed, _ = wide.split([layer.conv_dim, layer.value_dim], dim=-1)
    b, a = (torch.randn(tokens, layer.num_v_heads, dtype=BF16, device=DEVICE) for _ in range(2))
    out = torch.zeros(tokens, layer.num_v_heads, layer.head_v_dim, dtype=BF16, device=DEVICE)
    metadata, name = delta_metadata(prompts, decodes), _encode_layer_name(layer.prefix)

    def call() -> Any:
        Current.layer, Current.metadata = layer, metadata
        torch.ops.vllm.qwen_gdn_attention_core(mixed, b, a, out, name)
        return out

    return call


def state_space_layer(name: str, slots: int) -> Any:
    layer, shape = bare(mamba_module.MambaMixer2, name), STATE_SPACE[name]
    heads, head_dim, groups, state = shape["heads"], shape["head_dim"], shape["groups"], shape["state"]
    layer.num_heads, layer.head_dim, layer.n_groups, layer.ssm_state_size = heads, head_dim, groups, state
    layer.intermediate_size = layer.tped_intermediate_size = heads * head_dim
    layer.groups_ssm_state_size = groups * state
    layer.conv_dim = layer.tped_conv_size = heads * head_dim + 2 * groups * state
    layer.tped_dt_size, layer.is_blackwell, layer._ssd_kernels_warmed_up = heads, False, True
    layer.cache_config = SimpleNamespace(mamba_block_size=8192, mamba_cache_mode="none")
    layer.conv1d = convolution(layer.conv_dim, bias=True)
    layer.conv_weights = layer.conv1d.weight.view(layer.conv_dim, KERNEL_WIDTH)
    widths = [layer.tped_intermediate_size, layer.groups_ssm_state_size, layer.groups_ssm_state_size]
    layer.split_hidden_states_B_C_fn = lambda x: torch.split(x, widths, dim=-1)
    layer.A = fixed(-torch.ones(heads, dtype=torch.float32, device=DEVICE))
    layer.D, layer.dt_bias = (fixed(torch.ones(heads, dtype=BF16, device=DEVICE)) for _ in range(2))
    kept = torch.zeros(slots, heads, head_dim, state, dtype=torch.float32, device=DEVICE)
    layer.kv_cache = (kept_inputs(slots, layer.conv_dim), kept)
    return layer


def state_space_metadata(prompts: Sequence[int], decodes: int, chunk: int) -> Any:
    """As vLLM's builder makes it for prompts nothing of which is cached, without drafting."""
    slots = ints(range(1, len(prompts) + decodes + 1))
    fields: dict[str, Any] = {
        "num_prefills": len(prompts), "num_prefill_tokens": sum(prompts), "num_decodes": decodes,
        "num_decode_tokens": decodes, "num_reqs": len(prompts) + decodes, "has_initial_states_p": None,
        "query_start_loc_p": None, "num_computed_tokens_p": None, "state_indices_tensor_p": slots[decodes:],
        "state_indices_tensor_d": slots[:decodes].unsqueeze(-1), "query_start_loc_d": None, "num_accepted_tokens": None,
        "block_idx_last_scheduled_token": None, "block_idx_first_scheduled_token_p": None,
        "block_idx_last_computed_token": None, "block_idx_last_scheduled_token_prev_step": None,
        "seq_lens": ints([1024] * decodes + list(prompts)), "chunk_size": chunk, "prep_initial_states": False,
    }  # fmt: skip
    if prompts:
        of_prompts = torch.tensor(starts(prompts), dtype=torch.int32)
        lengths = [[min(chunk, prompt - at) for at in range(0, prompt, chunk)] for prompt in prompts]
        counts = [len(chunks) for chunks in lengths]
        fields |= {
            "has_initial_states_p": torch.zeros(len(prompts), dtype=torch.bool, device=DEVICE),
            "query_start_loc_p": of_prompts.to(DEVICE),
            "cu_chunk_seqlen_p": ints(starts([length for chunks in lengths for length in chunks])),
            "last_chunk_indices_p": ints([end - 1 for end in itertools.accumulate(counts)]),
            "seq_idx_p": ints([index for index, count in enumerate(counts) for _ in range(count)]),
            **conv_fields(of_prompts),
        }
    return Mamba2AttentionMetadata(**fields)


def state_space_call(layer: Any, prompts: Sequence[int], decodes: int) -> Call:
    tokens = sum(prompts) + decodes
    width = layer.tped_intermediate_size + layer.tped_conv_size + layer.tped_dt_size
    projected = torch.randn(tokens, width, dtype=BF16, device=DEVICE) * 0.5
    out = torch.zeros(tokens, layer.tped_intermediate_size, dtype=BF16, device=DEVICE)
    metadata = state_space_metadata(prompts, decodes, STATE_SPACE[layer.prefix]["chunk"])
    name = _encode_layer_name(layer.prefix)

    def call() -> Any:
        Current.layer, Current.metadata = layer, metadata
        torch.ops.vllm.mamba_mixer2(projected, out, name)
        return out

    return call
