"""Giles Thomas's measurements: full fine-tunes of Llama 3 8B, Trainer and DeepSpeed's ZeRO 3.

This mapping was written from the programs of the repository alone and committed before anybody
here had opened its tables, so its first errors are those of a test that memlab could not see.

R rows (tokens of a batch) · T tokens of each of B sequences · L layers · N, K heads of width H

Model       its weights and gradients are in fp16, which take what bf16 takes; the recipe is "zero"
DeepSpeed   0.14.2 with the defaults of 0.19.8. `from_pretrained` stands before TrainingArguments,
            so no zero.Init is at work, and in this version it alone puts DeepSpeed's linear layers
            in the place of torch's: memory_efficient_linear=False
Attention   transformers 4.40.0 makes a mask of a padded batch, 2 · B · T², so SDPA takes its
            efficient kernel, which keeps keys and values of all heads, 4 · L · R · (N - K) · H.
            A mask whose rows are no multiple of 16 values is padded in each layer
Cache       without checkpoints the model returns its keys and values, 4 · L · R · K · H, which live
            to the end of the forward pass. There the logits are at their most, as in backward: in
            fp32, once more shifted, and their log-softmax
Counter     `active_bytes.all.peak` of rank 0, since the process began: blocks, as
            `memory_allocated`, and those that wait for a stream. Blocks that wait are left out
Left out    cuBLAS's workspaces, for the card is not named
Source      gpjt/fine-tune-2024-04: requirements.txt, ds_config.json and the programs in the folders
            of the tables; transformers 4.40.0: models/llama/modeling_llama.py; torch 2.2.2:
            aten/src/ATen/native/transformers/attention.cpp, pad_bias; deepspeed 0.14.2:
            runtime/zero/partition_parameters.py, patch_init_and_builtins, and stage3.py
"""

from memlab import Model, Recipe, Run, Sharding

from .described import Described, Refused

ZERO = Recipe.named("zero")
MODEL = Model.preset("llama-3-8b")
PADDED = 16  # values, to which the efficient kernel aligns a mask's rows


def describe(reading):
    """See the module.

    Raises      Refused
    """
    what = reading.what
    batch, tokens = what["batch"], what["tokens"]
    if tokens == 1:
        raise Refused("sequences of one token, from which nothing is learnt")
    again = what["checkpointing"]
    devices = Sharding(
        data=what["gpus"], zero=3, library="deepspeed", memory_efficient_linear=False
    )
    told = {"batch": batch, "tokens": tokens, "devices": devices}
    run = Run(checkpoint="block" if again else "none", **told)
    copies = 0 if again else MODEL.layers
    more = [("mask", mask(batch, tokens, copies=copies))]
    more += [("labels and mask of the text", 2 * 8 * batch * tokens)]
    if not again:
        each = 4 * MODEL.layers * batch * tokens * MODEL.head_dim
        more += [("keys and values of all heads", each * (MODEL.heads - MODEL.kv_heads))]
        more += [("keys and values that are returned", each * MODEL.kv_heads)]
    return Described(MODEL, ZERO, run, "allocated", more=tuple(more))


def mask(batch, tokens, *, copies):
    """Bytes of the masks in fp16: one, and where its rows are padded as many copies more.

    copies      layers that keep their own; with checkpoints it goes with the layer
    """
    row = -(-tokens // PADDED) * PADDED
    padded = 0 if row == tokens else copies * row
    return 2 * batch * tokens * (tokens + padded)
