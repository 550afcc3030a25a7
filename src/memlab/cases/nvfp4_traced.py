"""The trainer at full size on tensors without values: every operator runs, no memory is taken."""

import torch

from ..lab.models import TinyLlama
from ..measure import Tracker
from ..measure.shapes_mode import ShapesMode
from ..model import Model
from .nvfp4_trainer import Settings, Trainer, export, load


def end_of_forward(model: Model, settings: Settings, *, tokens: int, layers: int = 0) -> int:
    """Bytes at the end of a forward pass of one sequence; stock Adam has gradients there, as zeros.

    layers      how many of the model's layers; the others, all alike, add as much each: trace one
                and two of them, and the whole is one + (L - 1) · (two - one)
    Leaves out  rows: the states of each matrix are one piece, since tracing thousands takes long
    """
    shape = model.replace(layers=layers or model.layers, positions=tokens)
    with ShapesMode():
        trainer = Trainer(load(export(TinyLlama(shape)), shape, settings), settings)
        for parameter in trainer.net.parameters():
            parameter.grad = None if settings.packed else torch.zeros_like(parameter)
        ids_BT = torch.zeros(1, tokens, dtype=torch.long)
        with Tracker() as tracker:
            tracker.label([trainer.net, trainer.optimizer])
            zeros = [p.grad for p in trainer.net.parameters() if p.grad is not None]
            tracker.label(zeros, "gradients")
            tracker.label(ids_BT, "inputs")
            if settings.disposed:
                loss = trainer.loss_of(ids_BT, 0, tokens)
            else:
                with trainer.undisposed:
                    loss = trainer.loss_of(ids_BT, 0, tokens)
            found = tracker.current
            del loss
    return found
