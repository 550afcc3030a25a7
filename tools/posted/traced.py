"""Peaks that memlab traces: PEFT's own code on tensors without values, where no formula knows it.

Layers      a peak is affine in the number of layers, so a model with two of them and one with three
            are traced, and the rest is added; the moment must be the same in both
Stored      book/posted-traces.json has both peaks of each method and what it trains. A test traces
            some of them again, another draw for other code, and they must be equal to the byte
Loop        as tools/posted/peft.py says: `outputs` lives on, the gradients are clipped
Host        what PEFT leaves on the host (ON_HOST) is no byte of the device
Left out    padding: no mask is given, and so attention runs in the kernel that needs none

python tools/posted --trace [NAME ...]     trace these again, or those that have no figure yet
"""

import json
import logging
import warnings
from typing import Any
from unittest.mock import patch

from .peft_methods import LAYERS, METHODS, SAME
from .readings import ROOT

PATH = ROOT / "book" / "posted-traces.json"
FEW, MORE = 2, 3
BATCH, TOKENS = 4, 684  # tools/posted/peft.py: LONGEST
SHAPE: dict[str, Any] = {"vocab_size": 128256, "hidden_size": 3072, "intermediate_size": 8192}
SHAPE |= {"num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128}
SHAPE |= {"max_position_embeddings": 131072, "tie_word_embeddings": True}
# Methods that read values when they are made, so their weights are in memory that nobody fills.
VALUES = ("SHIRA", "UNILORA", "VBLORA", "WAVEFT", "BOFT")
# Buffers that PEFT makes on the host and leaves there, whatever device the base is on: a forward
# pass copies them over. peft/tuners/boft/layer.py: update_layer registers boft_P, and
# _move_adapter_to_device_of_base_layer moves what `adapter_layer_names` lists, which it is not in.
ON_HOST = ("boft_P",)


def kept():
    """The stored figures: {name: [peak with two layers, with three, trained with two, three]}."""
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def has(name):
    """Whether there is a figure of this method."""
    return SAME.get(name, name) in kept()


def peak(name, layers, trained):
    """Bytes at the peak of a model with so many layers, of which so many values are trained.

    Adapters that several layers share are no multiple of layers: what differs is added with 12
    bytes a value, the fp32 weight and AdamW's two states, for gradients are gone at the loss.
    Raises      KeyError for a method without a figure
    """
    few, more, some, others = kept()[SAME.get(name, name)]
    turns = layers - FEW
    counted = some + turns * (others - some)
    return few + turns * (more - few) + 12 * (trained - counted)


def figures(name):
    """The row of a method, traced now."""
    (few, some, here), (more, others, there) = (traced(name, layers) for layers in (FEW, MORE))
    if few.op != more.op or few.moment != more.moment:
        raise ValueError(f"{name}: the peak is in {few.op} and in {more.op}")
    return [few.peak - here, more.peak - there, some, others]


def write(names):
    """Trace these methods, or all that have no figure; what fails is said and left out."""
    found = kept()
    for name in names or [each for each in METHODS if each not in found]:
        try:
            found[name] = figures(name)
        except Exception as error:  # whatever peft or a trace raises of a method is why it is out
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", flush=True)
            continue
        print(name, *found[name], flush=True)
        rows = [f" {json.dumps(each)}: {json.dumps(found[each])}" for each in sorted(found)]
        PATH.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def traced(name, layers):
    """The trace of a model with so many layers, how many of its values are trained, and bytes that
    the trace counts though they are on the host."""
    import torch

    from memlab.measure import trace

    held: dict[str, Any] = {}

    def step(module):
        # LoHa and LoKr draw whether a module is dropped, with probability 0: any draw is above it.
        with patch.object(torch, "rand", lambda *_: 1.0):
            _step(module)

    def _step(module):
        there = next(module.parameters()).device
        ids = torch.zeros(BATCH, TOKENS, dtype=torch.long, device=there)
        held["outputs"] = module(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids)
        held["outputs"].loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)

    model = built(name, layers)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return trace(model, step), trained, on_host(model)


def on_host(model):
    """Bytes of the buffers that PEFT leaves on the host."""
    held = [b for name, b in model.named_buffers() if name.rpartition(".")[2] in ON_HOST]
    return sum(b.numel() * b.element_size() for b in held)


def built(name, layers):
    """The adapted model, on the meta device or in memory that was never touched."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        import peft
        import transformers

        kind, fields = METHODS[name]
        told = {key: layers if value == LAYERS else value for key, value in fields.items()}
        if "use_bdlora" in told:
            told["use_bdlora"] = peft.tuners.lora.config.BdLoraConfig(**told["use_bdlora"])
        if "token_dim" in told:
            told["task_type"] = "CAUSAL_LM"
        config = transformers.LlamaConfig(num_hidden_layers=layers, **SHAPE)
        with torch.device("meta"):
            model: Any = transformers.LlamaForCausalLM(config)
        model = model.to(torch.bfloat16)
        classes: dict[str, Any] = {str(name.value): each for name, each in _classes().items()}
        adapter = classes[kind](**told)
        if kind in VALUES:
            model = model.to_empty(device="cpu")
            model.tie_weights()
            made = peft.get_peft_model(model, adapter)
        else:
            with torch.device("meta"):
                made = peft.get_peft_model(model, adapter)
        logging.disable(logging.NOTSET)
    return made.train()


def _classes():
    import peft

    return peft.mapping.PEFT_TYPE_TO_CONFIG_MAPPING
