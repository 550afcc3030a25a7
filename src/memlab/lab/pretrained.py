"""How transformers loads: from_pretrained on a checkpoint of its own, written on the spot."""

import tempfile
import warnings
from collections.abc import Callable

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

logging.disable_progress_bar()


def pretrained(layers: int, dtype: str, mark: Callable[[str], None]) -> None:
    """Write a Llama of that many layers in bf16, load it in `dtype`, and use each weight once.

    dtype       "auto" (as the file says; it is the default) or the name of a format in torch
    """
    config = LlamaConfig(
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=layers,
        num_attention_heads=16,
        num_key_value_heads=8,
        vocab_size=256,
    )
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        LlamaForCausalLM(config).bfloat16().save_pretrained(folder)
        mark("saved")
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
        mark("load")
        for parameter in model.parameters():
            parameter.sum()
        mark("read")
