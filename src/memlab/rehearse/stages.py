"""Stages of a pipeline: what they tell each other before the first micro-batch, in one process.

They vote on whether all were told their shapes; if not, each runs once and tells the next one what
it gives. Here every stage votes as this rank's do, and shapes come from ranks rehearsed before.

Source      PyTorch 2.13: torch/distributed/pipelining/stage.py, PipelineStage
Leaves out  the bytes of those messages, some hundred
"""

import sys
from typing import Any

import torch

from ..measure.fake_cuda.refused import Refused
from ..measure.fake_cuda.undo import Changes


def stages(changes: Changes, sent: dict[tuple[int, int], Any]) -> None:
    """Let stages vote, send and receive without their neighbours.

    sent        (from, to) -> shapes; kept from rank to rank
    """
    home = sys.modules.get("torch.distributed.pipelining.stage")
    kind = getattr(home, "PipelineStage", None)
    if home is None or not hasattr(kind, "_warmup_forward_vote"):
        return
    votes: dict[int, Any] = {}

    def vote(stage: Any, has_backward: bool, received_acc: Any = None) -> Any:
        asks = home.InferenceMode.needs_dynamic(stage._user_meta, has_backward)
        mine = torch.tensor([not asks], dtype=torch.int32, device=stage.device)
        votes[id(stage)] = mine if received_acc is None else received_acc * mine
        return votes[id(stage)]

    def result(stage: Any, received_result: Any = None) -> Any:
        own = votes.pop(id(stage))
        return own if received_result is None else received_result

    def send(stage: Any, meta: Any, to: int) -> None:
        sent[stage.stage_index, to] = meta

    def receive(stage: Any, source: int) -> Any:
        if (source, stage.stage_index) in sent:
            return sent[source, stage.stage_index]
        if source > stage.stage_index:  # a gradient has the shape of what it is the gradient of
            return home._StageBackwardMeta(home._derive_grad_metas(stage._stage_meta.outputs))
        raise Refused(
            f"stage {stage.stage_index} of a pipeline asks stage {source} for shapes: tell it "
            "(PipelineStage(..., input_args=, output_args=)), or rehearse all ranks (--rank all)"
        )

    own = {"_warmup_forward_vote": vote, "_warmup_backward_result": result}
    changes.replace_all(kind, own | {"_send_meta": send, "_recv_meta": receive})
