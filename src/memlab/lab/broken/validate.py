"""Train a small Llama, and note after each step how well it does on a text it has not seen.

    python -m memlab.lab.broken.validate

Predicted: a step of tiny-llama in fp32, 8 sequences of 64 tokens. It needs more.
"""

import sys

import torch

from memlab import Model
from memlab.lab.models import TinyLlama

STEPS = 5


def passage(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, (8, 64), generator=generator)


def validate(net):
    ids = passage(seed=1000)
    return net(ids, ids)


def main(arguments=()):
    torch.manual_seed(0)
    net = TinyLlama(Model.preset("tiny-llama"))
    optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
    history = []
    for step in range(STEPS):
        ids = passage(seed=step)
        loss = net(ids, ids)
        loss.backward()
        del loss
        optimizer.step()
        optimizer.zero_grad()
        history.append(validate(net))
    return history


if __name__ == "__main__":
    print(main(sys.argv[1:]))
