"""How transformers loads: from_pretrained on a checkpoint of its own, written on the spot."""

import tempfile
import warnings
from collections.abc import Callable

import torch

from .quiet import quiet


def pretrained(layers: int, mark: Callable[[str], None]) -> None:
    """Write a Llama of that many layers in bf16; load it as it is, then in fp32, and use it.

    Marks       "auto loaded", "auto used", "float32 loaded", "float32 used": dtype="auto" is the
                default and means the format of the file; used is when each weight was read once
    """
    # Here and not above: importing transformers takes seconds, and only this process needs it.
    with quiet():
        from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
        from transformers.utils import logging

    logging.disable_progress_bar()
    config = LlamaConfig(
        hidden_size=1280,
        intermediate_size=3520,
        num_hidden_layers=layers,
        num_attention_heads=16,
        num_key_value_heads=8,
        vocab_size=256,
    )
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        LlamaForCausalLM(config).bfloat16().save_pretrained(folder)
        for dtype in ("auto", "float32"):
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
            mark(f"{dtype} loaded")
            for parameter in model.parameters():
                parameter.sum()
            mark(f"{dtype} used")
            del model, parameter
