"""Go on with the training of a small Llama, from a checkpoint in bf16.

    python -m memlab.lab.broken.resume

Predicted: a step of tiny-llama in bf16, 8 sequences of 64 tokens. It needs more.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from memlab import Model
from memlab.lab.models import TinyLlama

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
STEPS = 3


def passage(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, (8, 64), generator=generator)


def checkpoint():
    """What an earlier run has left: weights in bf16, read from a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.pt")
        torch.manual_seed(0)
        torch.save(TinyLlama(Model.preset("tiny-llama")).bfloat16().state_dict(), path)
        return torch.load(path)


def main(arguments=()):
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", choices=DTYPES, default="fp32")
    options = parser.parse_args(arguments)
    state = checkpoint()
    net = TinyLlama(Model.preset("tiny-llama")).to(DTYPES[options.dtype])
    net.load_state_dict(state)
    optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
    losses = []
    for step in range(STEPS):
        ids = passage(seed=step)
        loss = net(ids, ids)
        loss.backward()
        losses.append(loss.item())
        del loss
        optimizer.step()
        optimizer.zero_grad()
    return losses


if __name__ == "__main__":
    print(main(sys.argv[1:]))
