"""Five ways to load a checkpoint, each a few lines.

The file is in fp32; the model shall be in bf16 and stay on the CPU. Each way calls `mark` where
something has just been read or made: a tracker or a process then notes what is held. The ways, and
the words that they mark, are those of `memlab.terms.loading`. A folder is what `save` wrote.
"""

import json
from collections.abc import Callable
from pathlib import Path

import torch
from huggingface_hub import save_torch_state_dict
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

from ..families import record_of
from ..model import Model
from .models import TinyLlama
from .models.llama import rotary_angles

Mark = Callable[[str], None]
WHOLE, SHARDS = "whole.pt", "model*.safetensors"

# The first embedding on meta makes torch load hundreds of modules. Here it happens once, before a
# process of its own is forked for each way.
nn.Embedding(1, 1, device="meta")


def save(shape: Model, folder: str, limit: int) -> None:
    """Write a checkpoint in fp32 twice, whole and in shards of `limit` bytes, and its config."""
    torch.manual_seed(0)
    state = TinyLlama(shape).state_dict()
    torch.save(state, Path(folder) / WHOLE)
    save_torch_state_dict(state, folder, max_shard_size=limit)
    said = {key: getattr(shape, field) for field, (key, _) in record_of(shape.family).shape.items()}
    text = json.dumps({"model_type": shape.family, **said})
    (Path(folder) / "config.json").write_text(text, encoding="utf-8")


def copy(folder: str, mark: Mark) -> TinyLlama:
    """A model with memory of its own, then a second copy of everything from the file."""
    model = TinyLlama(Model.from_config(folder))
    mark("build")
    state = torch.load(Path(folder) / WHOLE)
    mark("read")
    model.load_state_dict(state)
    mark("copy")
    del state
    mark("drop")
    cast(model, mark)
    mark("close")
    return finish(model)


def assign(folder: str, mark: Mark) -> TinyLlama:
    """A model without memory takes the tensors that were read."""
    model = skeleton(folder)
    state = torch.load(Path(folder) / WHOLE)
    mark("read")
    model.load_state_dict(state, assign=True)
    del state
    cast(model, mark)
    mark("close")
    return finish(model)


def mmap(folder: str, mark: Mark) -> TinyLlama:
    """The same, but nothing is read: the tensors point into the file."""
    model = skeleton(folder)
    state = torch.load(Path(folder) / WHOLE, mmap=True)
    mark("read")
    model.load_state_dict(state, assign=True)
    del state
    cast(model, mark)
    mark("close")
    return finish(model)


def shards(folder: str, mark: Mark) -> TinyLlama:
    """One file after another, each read and cast before the next."""
    model = skeleton(folder)
    for path in sorted(Path(folder).glob(SHARDS)):
        state = load_file(path, backend="pread")
        mark("read")
        model.load_state_dict(state, strict=False, assign=True)
        del state
        cast(model, mark)
        mark("close")
    return finish(model)


def stream(folder: str, mark: Mark) -> TinyLlama:
    """One file after another, mapped; one tensor after another."""
    model = skeleton(folder)
    for path in sorted(Path(folder).glob(SHARDS)):
        with safe_open(path, framework="pt") as file:
            mark("read")
            for name in file.offset_keys():
                model.load_state_dict({name: file.get_tensor(name)}, strict=False, assign=True)
                cast(model, mark)
        mark("close")
    return finish(model)


def skeleton(folder: str) -> TinyLlama:
    """Names and shapes of the model, and no memory."""
    with torch.device("meta"):
        return TinyLlama(Model.from_config(folder))


def cast(model: nn.Module, mark: Mark) -> None:
    """What model.to(torch.bfloat16) does with each parameter that has memory, one by one."""
    for parameter in model.parameters():
        if parameter.dtype != torch.bfloat16 and not parameter.is_meta:
            new = parameter.data.to(torch.bfloat16)
            mark("cast")
            parameter.data = new


def finish(model: TinyLlama) -> TinyLlama:
    """Compute the tables that no checkpoint holds; on a skeleton they are still without memory."""
    angles_TH = rotary_angles(*model.cos_TH.shape)
    model.cos_TH, model.sin_TH = (t.to(torch.bfloat16) for t in (angles_TH.cos(), angles_TH.sin()))
    return model


def touch(folder: str, mark: Mark) -> None:
    """A mapped model in the format of its file: loaded, then read, then written to."""
    model = skeleton(folder)
    model.load_state_dict(torch.load(Path(folder) / WHOLE, mmap=True), assign=True)
    mark("load")
    for parameter in model.parameters():
        parameter.sum()
    mark("read")
    with torch.no_grad():
        for parameter in model.layers[0].parameters():
            parameter.add_(1)  # as an optimizer's step does
    mark("write")
