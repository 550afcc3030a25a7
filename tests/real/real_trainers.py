"""The loops of libraries run for real on a CPU: transformers' Trainer, three of TRL, nanoGPT's."""

from dataclasses import dataclass
from typing import Any

import torch

from memlab import Model, Run
from memlab.base.gc_paused import no_garbage
from memlab.lab.train import one_thread
from memlab.lab.trainer_rows import STEPS
from memlab.lab.trainers import CONFIG, decoder, watched
from memlab.measure.step_tracker import StepTracker
from memlab.step import simulate


@dataclass(frozen=True)
class Peaks:
    """Bytes of one step: before it, and its highest moment inside backward, outside, and after.

    evaluation      the highest moment of the one that follows, where there is one
    """

    before: int
    backward: int
    elsewhere: int
    after: int
    evaluation: int = 0


def derived(precision: str, run: Run, config: Any = CONFIG) -> Peaks:
    """What the simulation says of the step that `trained` runs."""
    log = simulate(Model.from_config(config), precision, run).log
    marks = sorted((at, name) for name, at in log.marks.items() if name.startswith("second."))
    tops = {"backward": 0, "elsewhere": 0}
    tops["evaluation"] = 0
    parts = {"backward": "backward", "evaluation": "evaluation"}
    for (first, name), (last, _) in zip(marks, marks[1:], strict=False):
        part = parts.get(name.split(".")[1], "elsewhere")
        tops[part] = max([tops[part], *(total for _, _, total in log.events[first:last])])
    ended = log.marks.get("second.evaluation", log.marks["second.end"])
    after = log.events[log.marks["second.optimizer"] : ended]
    return Peaks(log.events[marks[0][0] - 1][2], **tops, after=max(total for *_, total in after))


def trained(precision: str, run: Run, folder: Any, config: Any = CONFIG) -> Peaks:
    """The third step of the loop that the run names, counted storage by storage."""
    tracker, first, last = (
        _nanogpt(precision, run)
        if run.loop == "nanogpt"
        else watched(precision, run, folder, config=config)
    )
    events = tracker.timeline[first:last]
    inside = [event.total for event in events if event.phase == "backward"]
    outside = [event.total for event in events if event.phase != "backward"]
    ended = max(event.index for event in events if event.phase == "backward")
    # From the first norm on: till then the loss and its graph go, which backward left behind.
    norms = [event.index for event in events if event.index > ended and "norm" in event.op]
    after = [event.total for event in events if event.index >= min(norms, default=ended)]
    before, evaluation = tracker.timeline[first - 1].total, getattr(tracker, "evaluation", 0)
    return Peaks(before, max(inside), max(outside), max(after), evaluation)


def _nanogpt(precision: str, run: Run) -> tuple[StepTracker, int, int]:
    """nanoGPT's train.py around a model of transformers, line by line; the third step of four."""
    model = decoder(precision, run).train()
    if run.checkpointing == "block":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    model.config.use_cache = False
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    context = torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast")
    tracker, starts = StepTracker(), []
    sizes = (run.batch, run.tokens)

    def get_batch():
        return [torch.randint(CONFIG["vocab_size"], sizes) for _ in "XY"]

    with one_thread(), no_garbage(), tracker:
        tracker.label(model)
        tracker.follow = True
        X, Y = get_batch()
        for _ in range(STEPS):
            starts.append(len(tracker.timeline))
            for _ in range(run.micro_batches):
                with context:
                    loss, logits = model(X, labels=Y, return_dict=False)
                    loss = loss / run.micro_batches
                X, Y = get_batch()
                loss.backward()
            if run.clips:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        del logits
    return tracker, starts[2], starts[3]
