"""Chunked cross-entropy: the loss and its gradients without ever holding all logits.

Letters     R rows (B · T tokens), D model width, V vocabulary, C rows of one chunk
"""

from typing import Any

import torch
from torch import Tensor

IGNORED = -100  # torch.nn.functional.cross_entropy's ignore_index: rows that ask for nothing


def chunked_cross_entropy(x_RD: Tensor, head_VD: Tensor, labels_R: Tensor, chunks: int) -> Tensor:
    """Mean cross-entropy of `x @ head.T`, computed in fp32, a chunk of rows at a time.

    Shapes      x [R, D], head [V, D], labels [R] with -100 for rows without one; returns a scalar
    Source      the idea is that of Liger Kernel: Hsu et al. 2024, arXiv:2410.10989, section 3.2
    Changes     gradients are computed in the forward pass, beside the loss, since the logits are
                gone afterwards; backward only scales them, once
    Leaves out  a bias on the head, label smoothing, a second backward pass
    Raises      ValueError for fewer than one chunk or more chunks than rows
    """
    if not 1 <= chunks <= len(labels_R):
        raise ValueError(f"chunks={chunks}; between 1 and {len(labels_R)} (the rows) is needed")
    return _Chunked.apply(x_RD, head_VD, labels_R, -(-len(labels_R) // chunks))


class _Chunked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_RD: Tensor, head_VD: Tensor, labels_R: Tensor, rows: int) -> Tensor:
        dx_RD, dhead_VD = torch.empty_like(x_RD), torch.zeros_like(head_VD)
        loss = torch.zeros((), dtype=torch.float32, device=x_RD.device)
        count = (labels_R != IGNORED).sum()
        for start in range(0, len(labels_R), rows):
            x_CD, labels_C1 = x_RD[start : start + rows], labels_R[start : start + rows, None]
            logits_CV = (x_CD @ head_VD.T).float()
            logits_CV -= logits_CV.amax(-1, keepdim=True)  # exp cannot overflow
            asked_C1 = (labels_C1 != IGNORED) / count  # each row's share of the mean
            labels_C1 = labels_C1.clamp(min=0)
            correct_C1 = logits_CV.gather(-1, labels_C1)
            total_C1 = logits_CV.exp_().sum(-1, keepdim=True)
            loss += ((total_C1.log() - correct_C1) * asked_C1).sum()
            # The gradient of the logits, in their place: (softmax - one-hot) · share.
            logits_CV *= asked_C1 / total_C1
            logits_CV.scatter_add_(-1, labels_C1, -asked_C1)
            logits_CV = logits_CV.to(head_VD.dtype)
            torch.mm(logits_CV, head_VD, out=dx_RD[start : start + rows])
            dhead_VD.addmm_(logits_CV.T, x_CD)
            del logits_CV  # or the next chunk's would be made beside it
        ctx.save_for_backward(dx_RD, dhead_VD)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        dx_RD, dhead_VD = ctx.saved_tensors
        return dx_RD.mul_(grad), dhead_VD.mul_(grad), None, None
