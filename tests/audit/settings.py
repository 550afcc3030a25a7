"""Other settings, for the checks that no figure of a claim turns: what is run again, and with what.

Nothing is replaced by an answer: a model is built in another shape or format, a setting of a
library or of the rebuilt program is another one, or a function has a slip that people make; and
the check measures anew.

Each name is a check. A target without a dot belongs to the module of the check.
"""

import gc
from functools import partial

import torch
from audit.note_001 import TINY as TINY_QWEN
from audit.note_001 import file
from audit.note_002 import CODE, MODELS
from audit.note_003 import FULL
from audit.note_003 import TINY as TINY_LLAMA
from audit.note_004 import OWN_BLOCKS, SMALL_WIDE, SPARING, TABLE
from torch import nn
from torch.nn.utils import prune
from transformers import LlamaForCausalLM, modeling_utils
from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING

from memlab import Model, Recipe
from memlab.base.frozen import replace
from memlab.cases import nanochat_step
from memlab.cases.muon_lion import D20, D20_FULL
from memlab.cases.nanochat import NanoChat, Shape
from memlab.cases.nvfp4_program import COMMAND, DEFAULTS
from memlab.cases.nvfp4_trainer import Settings, run
from memlab.cases.packed_adam import PackedAdam
from memlab.lab import text as alice
from memlab.lab.checkpoint_rotation import KeepLast
from memlab.lab.host import File
from memlab.lab.models import TinyGPT, TinyLlama
from memlab.lab.models.common import next_token_loss
from memlab.lab.quantize import dequantize, quantize
from memlab.lab.train import one_thread
from memlab.measure import storage_bytes
from memlab.step.core.setting import adapted_shapes
from memlab.terms.loading import WAYS

QWEN = Model.preset("qwen3-4b").replace(tied=False)
IN_FP32 = partial(NanoChat, tables=torch.float32)


def in_bf16(*shape, **how):
    return NanoChat(*shape, **how).bfloat16()


NOTE_000 = {
    "tables_stay": {"TABLE": partial(nn.Linear, bias=False)},
    "head_too": {"SHAPE": Shape(vocab=32_760)},
    "stored": {"memlab.cases.nanochat_step.NanoChat": in_bf16},
    "at_the_start": {"SHAPE": Shape(depth=60, width=3840, heads=30)},
    "windows": {"LONG": Shape(6, 128, 4, 256, 64, "L")},
    "two_bytes": {
        "memlab.cases.nanochat_step.NanoChat": IN_FP32,
        "memlab.cases.nanochat_step._pair_of_cuts": nanochat_step._pair_of_cuts.__wrapped__,
    },
    "same_with_fp8": {"to_fp8": nn.Module.bfloat16},
    "reason": {"OF_GRADIENTS": torch.int8, "LARGEST": 127},
    "together": {"BATCH": 64},
}


def in_fp64():
    """A file of wide values and no codes."""
    torch.manual_seed(0)
    return {name: value.double() for name, value in TinyLlama(TINY_QWEN).state_dict().items()}


AGAIN = partial(Settings, again=True)


def rows_are_sequences(rows):
    """The small trainer as it would be if its rows a time were its batch."""
    pages = list(alice.batches(rows, 32, steps=2))
    with one_thread():
        return run(file(), TINY_QWEN, Settings(rows=0), pages)


def one_format(params, lr, **how):
    """The program's optimizer, deaf to the word that chooses the states."""
    return PackedAdam(params, lr, **how | {"states": "int8/row"})


def rounded_alone(weight, format):
    """Rounding without the straight-through sum: no gradient comes through it."""
    return dequantize(quantize(weight, format), weight.dtype)


NOTE_001 = {
    "states_in_int8": {"memlab.cases.nvfp4_trainer.PackedAdam": one_format},
    "everything_is_trained": {"memlab.cases.straight_through.straight_through": rounded_alone},
    "batch_by_rows": {"small": rows_are_sequences},
    "recompute_by_prefix": {"RECOMPUTE": "layers"},
    "recompute_makes_tenth": {"RECOMPUTE": "layers"},
    "rounded_weights": {"Settings": AGAIN},
    "int8_saves": {"DEFAULTS": DEFAULTS | {"states": "bf16"}},
    "other_format_is_larger": {"DEFAULTS": DEFAULTS | {"states": "bf16"}},
    "adam_states_in_fp32": {"MASTER": torch.float32},
    "gradients_beside_wide_master": {"WIDE": torch.bfloat16},
    "loading_sets_the_peak": {"file": in_fp64},
    "left_from_loading": {"FULL": Model.preset("qwen3-14b")},
    "narrow_master": {"COMMAND": COMMAND | {"--lr": "0.05"}},
    "starts_from_the_codes": {"STARTS_FROM": "wide", "COMMAND": COMMAND | {"--lr": "0.005"}},
    "at_one_moment": {"Settings": AGAIN, "TOKENS": 2},
    "narrow_reach": {"TOKENS": 4096},
    "explained": {"NEAR": (78 * 10**9, 805 * 10**8)},
    "nothing_disposed": {"DISPOSED": True},
    "most_is_in_the_step": {"DISPOSED": True},
    "old_and_new_states": {"FULL": QWEN.replace(vocab=1000)},
    "waiting_for_the_self_test": {"FULL": QWEN.replace(vocab=1000)},
    "copies_of_gradients": {"CLEANS_GRADIENTS": False},
}


class InMemory(KeepLast):
    """The last checkpoints once more, in memory."""

    def save(self, step, state):
        copies = [*getattr(self, "copies", []), {name: x.clone() for name, x in state.items()}]
        self.copies = copies[-self.keep :]
        return super().save(step, state)


class Untied(TinyLlama):
    """A model that copies its table for its head."""

    def __init__(self, model):
        super().__init__(model)
        self.lm_head.weight = nn.Parameter(self.lm_head.weight.clone())


BLOCK_OF_64 = {"memlab.lab.muon8.narrow.__defaults__": (64,)}
SHORT = {"LENGTH": 16}
NOTE_002 = {
    "waiting": {"MICRO_BATCHES": 1},
    "tied_once": {"TinyLlama": Untied},
    "worth_it": {"memlab.lab.muon8.narrow.__defaults__": (1,)},
    "covered": {"MODELS": [m.replace(vocab=16) for m in MODELS]},
    "tokens_left_out": {"LENGTHS": (16, 32, 64)},
    "heads_left_out": {"CODE": CODE | {"mtp": {"d20-e3-full": 0}}},
    "fits_24": {"GPU": "H100 80GB"},
    "bytes_each": BLOCK_OF_64,
    "reduction": BLOCK_OF_64,
    "reduction_of_all": {"MODELS": [m.replace(vocab=16) for m in MODELS]},
    "zero_block": {"VALUES": torch.ones(256)},
    "negligible": {"CODE": CODE | {"benchmark": {"baseline": D20, "8-bit": D20}}},
    "fp8_scaling": {"NEAR": 1},
    "real_batch": {"SEQUENCES": 5},
    "on_disk": {"KeepLast": InMemory},
    "above_10b": SHORT,
    "priority": SHORT,
    "larger_models": {"MODELS": [*MODELS, D20_FULL.replace(vocab=10**6)]},
    "not_measured": BLOCK_OF_64,
    "two_changes": {"STATES": 1},
    "parity": {"memlab.lab.muon8.LARGEST": 1},
    "rounded_in_forward": {"ASKED": False},
}


class Eager(TinyLlama):
    """A model whose forward pass makes gradients, too."""

    def forward(self, *given):
        loss = super().forward(*given)
        if loss.requires_grad:
            loss.backward(retain_graph=True)
        return loss


class Remembering(TinyLlama):
    """A model that keeps its last logits, for a plot."""

    def forward(self, ids, labels):
        self.last = super().forward(ids)
        return next_token_loss(self.last, labels)


class Summed(TinyLlama):
    """A model whose loss is the sum over its sequences and not their mean."""

    def forward(self, ids, labels):
        return len(ids) * super().forward(ids, labels)


class AlwaysGrad(TinyLlama):
    """A model that turns autograd on for itself."""

    forward = torch.enable_grad()(TinyLlama.forward)


class NeverFreed(File):
    """A host that holds on to all that it has brought."""

    def ask(self, *place):
        memory, wait = super().ask(*place)
        self.brought_so_far = [*getattr(self, "brought_so_far", []), memory]
        return memory, wait


def zeroed(net, units):
    """Pruning of whole units that only sets them to zero."""
    for layer in net.layers:
        part, share = layer.feed_forward.gate, 1 - units / layer.feed_forward.gate.out_features
        prune.remove(prune.ln_structured(part, "weight", share, n=2, dim=0), "weight")
    return net


def built_first(folder, low_cpu_mem_usage=False, **how):
    """As transformers 4 loaded: into a model that has memory of its own, unless told otherwise."""
    loaded = LlamaForCausalLM.from_pretrained(folder, **how)
    if low_cpu_mem_usage:
        return loaded
    net = LlamaForCausalLM(loaded.config)
    net.load_state_dict(loaded.state_dict())
    return net


def first_file(*args, _files=modeling_utils._get_resolved_checkpoint_files, **how):
    """A library that reads one file of a checkpoint."""
    files, index = _files(*args, **how)
    return files[:1], index


def uncoded(lora, *layer, **how):
    """QLoRA with each layer among those that its quantizer leaves alone."""
    return adapted_shapes(replace(lora, base=None), *layer, **how)


def on_any_device():
    """Bytes of all tensors that live, wherever they are."""
    return storage_bytes([x for x in gc.get_objects() if isinstance(x, torch.Tensor)])


def without(table, name):
    return {key: value for key, value in table.items() if key != name}


UNMAPPED = [("mmap", True, False, False) if way[0] == "mmap" else way for way in WAYS]
EIGHT_BITS = "transformers.quantizers.quantizer_bnb_8bit.Bnb8BitHfQuantizer"
QUANTIZERS = "transformers.quantizers.auto.AUTO_QUANTIZER_MAPPING"
CODES = torch.randint(-126, 127, (64, 256)).float()
CODES[:, ::128] = 127.0  # so that a step of INT8 is 1, and all of them are whole steps
NO_STATES = Recipe(weights="fp32", gradients="fp32", optimizer="sgd", states=())
LLAMA_8B, SMOL = Model.preset("llama-3.1-8b"), Model.preset("smollm2-135m")
NOTE_003 = {
    "small_models_fit": {"FULL": LLAMA_8B},
    "still_a_bottleneck": {"FULL": SMOL},
    "activations_are_temporary": {"tiny": partial(Remembering, TINY_LLAMA)},
    "buffers_only_in_training": {"tiny": partial(TinyGPT, Model.preset("tiny-gpt"))},
    "no_optimizer_states": {"TRAINED": NO_STATES},
    "no_cache": {"SERVED": {"batch": 1, "tokens": 128}},
    "no_checkpointing": {"LENGTH": 128},
    "to_smaller_formats": {"FORMATS": ("int8/1", "int4/1")},
    "weights_elsewhere": {"File": NeverFreed},
    "price_of_streaming": {"FULL": TINY_LLAMA},
    "nothing_to_offload": {"FULL": LLAMA_8B},
    "units_go": {"memlab.lab.prune.shrink": zeroed},
    "no_rewriting": {"memlab.lab.prune.shrink": zeroed},
    "zeros_that_pay": {"PLACES": {"format": "int64", "index_bytes": 4}},  # as wide as fp64
    "lazy_loading": {"memlab.terms.loading.WAYS": UNMAPPED},
    "shards_help": {"SHARD": 50 * 10**9},
    "low_cpu_mem_usage": {"transformers.AutoModelForCausalLM.from_pretrained": built_first},
    "device_map_places": {"transformers.modeling_utils._get_resolved_checkpoint_files": first_file},
    "the_example": {"STORED": torch.float16},
    "lora_is_not_qlora": {
        "memlab.step.core.setting.adapted_shapes": uncoded,
        "memlab.adapters.lora.coded_layers": lambda model: {},
    },
    "accumulation": {"tiny": partial(Summed, TINY_LLAMA)},
    "accumulation_floor": {"FULL": SMOL},
    "no_grad_saves": {"tiny": partial(AlwaysGrad, TINY_LLAMA)},
    "no_grad_in_training": {"tiny": partial(AlwaysGrad, TINY_LLAMA)},
    "runs_on_a_notebook": {"FULL": LLAMA_8B},
    "only_weights_and_activations": {"ANSWERED": {"batch": 1, "tokens": 15}},
    "calibration": {f"{EIGHT_BITS}.requires_calibration": True},
    "tools_exist": {QUANTIZERS: without(AUTO_QUANTIZER_MAPPING, "bitsandbytes_8bit")},
    "formats_or_methods": {QUANTIZERS: without(AUTO_QUANTIZER_MAPPING, "gguf")},
    "only_int4_loses": {"VALUES": CODES},
    "only_the_weights": {"AROUND": ("fp32", "bf16")},
    "pruning_is_lighter": {"ZEROS": 0.95, "SPARSE": True},
    "zeros_are_isolated": {"ZEROS": 0.999},
    "any_head": {"FULL": FULL.replace(kv_heads=1)},
    "one_shard": {"FULL": Model.preset("llama-3.1-70b")},
    "lora_trains_little": {"RANK": 512},
    "lora_at_inference": {"MERGED": torch.float16},
    "no_grad_gradients": {"tiny": partial(Eager, TINY_LLAMA)},
    "allocated_is_not_all": {"LARGE": 0, "SMALL": 20 * 2**20},
    "on_a_cpu": {"torch.cuda.memory_allocated": on_any_device},
    "profiler": {"PROFILED": False},
    "accelerate_offloads": {"WHERE": "cpu"},
}


SMALL_VOCAB = SMALL_WIDE.replace(vocab=512)
SMALL_BATCHES = {tokens: batch // 64 for tokens, batch in TABLE.items()}
# What would make the note right: GPT-2's vocabulary, no [B, T, V] of logits, checkpoints.
SPARED = {"SMALL_WIDE": SMALL_WIDE.replace(vocab=50_257)}
SPARED["OWN_BLOCKS"] = SPARING.replace(loss_chunks=8)
NOTE_004 = {
    "luxury": SPARED,
    "no_worry": SPARED,
    "nothing_grows": {"TABLE": {128: 4}},
    "vocabulary": {"TABLE": SMALL_BATCHES, "OWN_BLOCKS": SPARING},
    "both_double": {"OWN_BLOCKS": SPARING},
    "within_reach": {"SPARING": OWN_BLOCKS},
    "tokenizer": {"SMALL_WIDE": SMALL_WIDE.replace(embed_dim=64)},
    "no_pieces": {"TABLE": SMALL_BATCHES},
    "bound_by": {"SMALL_WIDE": SMALL_VOCAB, "TABLE": SMALL_BATCHES},
}
SETTINGS = NOTE_000 | NOTE_001 | NOTE_002 | NOTE_003 | NOTE_004
