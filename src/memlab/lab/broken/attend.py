"""Train a small Llama of transformers on longer texts, and look at what it attends to.

    python -m memlab.lab.broken.attend

Predicted: a step in fp32 with SDPA and checkpoints, 4 sequences of 128 tokens. It needs more.
"""

import argparse
import sys
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

CONFIG: dict[str, Any] = {
    "vocab_size": 256,
    "hidden_size": 128,
    "intermediate_size": 352,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
    "use_cache": False,
    "attn_implementation": "eager",
}
STEPS = 3


def passage(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, (4, 128), generator=generator)


def main(arguments=()):
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", action="store_true")
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    net = LlamaForCausalLM(LlamaConfig(**CONFIG))
    if options.checkpoint:
        net.activation_checkpointing_enable()
    net.train()
    optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
    losses = []
    for step in range(STEPS):
        ids = passage(seed=step)
        loss = net(ids, labels=ids).loss
        loss.backward()
        losses.append(loss.item())
        del loss
        optimizer.step()
        optimizer.zero_grad()
    return losses


if __name__ == "__main__":
    print(main(sys.argv[1:]))
