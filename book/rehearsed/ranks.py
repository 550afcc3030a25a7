"""A decoder with the sizes of Llama-3-8B, divided among ranks as the first word says."""

import json
import os
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from accelerate.big_modeling import _attach_context_parallel_hooks as without_mask
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoModelForCausalLM, DistributedConfig, LlamaConfig
from transformers.loss.loss_utils import ForCausalLMLoss

HOW, TOKENS, MICRO_BATCHES = sys.argv[1], 2048, 4
SIZES = dict(
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    vocab_size=128256,
    max_position_embeddings=8192,
)
dist.init_process_group("nccl")
RANK, RANKS = dist.get_rank(), dist.get_world_size()
DEVICE = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(DEVICE)


def made():
    return AutoModelForCausalLM.from_config(LlamaConfig(**SIZES), dtype=torch.bfloat16)


def sharded():
    with torch.device("meta"):
        model = made()
    for layer in model.model.layers:
        fully_shard(layer)
    return fully_shard(model).to_empty(device=DEVICE)


def divided(sequence):
    """Each matrix over all ranks; with `sequence` the tokens between them too."""
    mesh, model = init_device_mesh("cuda", (RANKS,)), made()
    tokens, whole = Shard(1), Replicate()
    cut = {"output_layouts": tokens, "use_local_output": False} if sequence else {}
    norms = {}
    if sequence:
        names = ("input_layernorm", "post_attention_layernorm")
        norms = {name: SequenceParallel() for name in names}
        norms["self_attn"] = PrepareModuleInput(
            input_kwarg_layouts={"hidden_states": tokens},
            desired_input_kwarg_layouts={"hidden_states": whole},
        )
        norms["mlp"] = PrepareModuleInput(input_layouts=tokens, desired_input_layouts=whole)
    columns = [f"self_attn.{name}_proj" for name in "qkv"] + ["mlp.gate_proj", "mlp.up_proj"]
    for layer in model.model.layers:
        plan = {name: ColwiseParallel() for name in columns}
        plan |= {name: RowwiseParallel(**cut) for name in ("self_attn.o_proj", "mlp.down_proj")}
        parallelize_module(layer, mesh, norms | plan)
    ends = {"model.embed_tokens": RowwiseParallel(input_layouts=whole, **cut)}
    head = tokens if sequence else whole
    ends["lm_head"] = ColwiseParallel(input_layouts=head, use_local_output=False)
    parallelize_module(model, mesh, ends | ({"model.norm": SequenceParallel()} if sequence else {}))
    return model.to(DEVICE)


def by_their_plan():
    """As from_pretrained divides a model; a config is all that it reads here."""
    folder = Path(tempfile.mkdtemp())
    (folder / "config.json").write_text(json.dumps(SIZES | {"model_type": "llama"}))
    how = DistributedConfig(tp_size=RANKS, tp_plan="auto")
    return AutoModelForCausalLM.from_pretrained(
        folder, distributed_config=how, dtype=torch.bfloat16
    )


def train(model, **more):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **more)
    for _ in range(3):
        ids = torch.randint(0, 1000, (1, TOKENS), device=DEVICE)
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        del loss
        optimizer.step()
        optimizer.zero_grad()


def in_a_ring():
    """FSDP2, and one text whose tokens all ranks share: torch's ring of keys and values."""
    model, mesh = sharded(), init_device_mesh("cuda", (RANKS,))
    without_mask(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for _ in range(3):
        ids = torch.randint(0, 1000, (1, TOKENS), device=DEVICE)
        positions = torch.arange(TOKENS, device=DEVICE)[None]
        labels = nn.functional.pad(ids, (0, 1), value=-100)[:, 1:].contiguous()
        cut = [ids, positions, labels]
        told = {"buffer_seq_dims": [1, 1, 1], "no_restore_buffers": set(cut)}
        with context_parallel(mesh, buffers=cut, **told):
            given = {"input_ids": ids, "position_ids": positions}
            loss = model(**given, labels=labels, shift_labels=labels).loss
            loss.backward()
            del loss
        optimizer.step()
        optimizer.zero_grad()


class Stage(nn.Module):
    """The layers of one rank; the first has the embedding, the last one norm and head."""

    def __init__(self, whole):
        super().__init__()
        self.model, each = whole.model, len(whole.model.layers) // RANKS
        self.model.layers = self.model.layers[RANK * each : (RANK + 1) * each]
        self.first, self.last = RANK == 0, RANK == RANKS - 1
        if not self.first:
            self.model.embed_tokens = None
        if self.last:
            self.lm_head = whole.lm_head
        else:
            self.model.norm = nn.Identity()

    def forward(self, x):
        given = {"input_ids" if self.first else "inputs_embeds": x}
        hidden = self.model(**given).last_hidden_state
        return self.lm_head(hidden) if self.last else hidden


def next_token_loss(logits, labels):
    return ForCausalLMLoss(logits, labels, vocab_size=logits.shape[-1])


def pipeline():
    stage = Stage(made()).to(DEVICE)
    schedule = Schedule1F1B(
        PipelineStage(stage, RANK, RANKS, DEVICE), MICRO_BATCHES, loss_fn=next_token_loss
    )
    optimizer = torch.optim.AdamW(stage.parameters(), lr=1e-5)
    ids = None
    if stage.first or stage.last:
        ids = torch.randint(0, 1000, (MICRO_BATCHES, TOKENS), device=DEVICE)
    for _ in range(3):
        given = (ids,) if stage.first else ()
        schedule.step(*given, **({"target": ids, "losses": []} if stage.last else {}))
        optimizer.step()
        optimizer.zero_grad()


if HOW == "copies":
    train(DistributedDataParallel(made().to(DEVICE), device_ids=[DEVICE.index]))
elif HOW == "shards":
    train(sharded())
elif HOW in ("matrices", "sequence"):
    with loss_parallel():
        train(divided(HOW == "sequence"), foreach=HOW == "sequence")
elif HOW == "their plan":
    train(by_their_plan(), foreach=False)
elif HOW == "ring":
    in_a_ring()
elif HOW == "layers":
    pipeline()
else:
    sys.exit(f"{HOW!r} is not known here")
