"""A mixture of experts, small enough to read: a router, and two ways to run the experts it chose.

Letters     R tokens of a batch, D model width, X experts, k of them for each token, M the width of
            one expert; x_RD is [R, D]
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WAYS = ("grouped", "loop")


class Mixture(nn.Module):
    """One feed-forward layer of X gated experts, of which each token passes k.

    Formula     sum over a token's experts e of p_e · down_e(silu(gate_e x) · up_e x)
    Shapes      router [X, D]; up, gate and up of all experts: [X, 2M, D]; down [X, D, M]
    way         grouped: rows sorted by expert, one product for all of them; loop: one expert after
                the other
    Source      Shazeer et al. 2017, arXiv:1701.06538; transformers, integrations/moe.py, and
                Qwen3MoeExperts.forward for the loop
    Leaves out  shared experts, biases, a loss that balances the router, several devices
    Raises      ValueError for an unknown way, and for more experts a token than there are
    """

    def __init__(self, d_model: int, *, experts: int, per_token: int, expert_ff: int, way: str):
        super().__init__()
        if way not in WAYS:
            raise ValueError(f"way={way!r}; known: {', '.join(WAYS)}")
        if not 1 <= per_token <= experts:
            raise ValueError(f"per_token={per_token}; between 1 and X={experts} experts is needed")
        self.per_token, self.way = per_token, way
        self.router = nn.Linear(d_model, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, 2 * expert_ff, d_model) / d_model**0.5)
        self.down = nn.Parameter(torch.randn(experts, d_model, expert_ff) / expert_ff**0.5)

    def forward(self, x_RD: Tensor, chosen_Rk: Tensor | None = None) -> Tensor:
        """The layer's output [R, D]; `chosen_Rk` takes the choice from the router."""
        probabilities_RX = self.router(x_RD).softmax(-1, dtype=torch.float32)
        if chosen_Rk is None:
            best_Rk, chosen_Rk = probabilities_RX.topk(self.per_token)
        else:
            best_Rk = probabilities_RX.gather(-1, chosen_Rk)
        best_Rk = best_Rk.to(x_RD.dtype)
        if self.way == "loop":
            return self.one_by_one(x_RD, best_Rk, chosen_Rk)
        return self.grouped(x_RD, best_Rk, chosen_Rk)

    def grouped(self, x_RD: Tensor, best_Rk: Tensor, chosen_Rk: Tensor) -> Tensor:
        """Permute, multiply each group of rows by its expert's matrices, permute back.

        Shapes      S = R · k rows, sorted by expert; ends_X: where each expert's rows end
        """
        by_expert_S, order_S = chosen_Rk.flatten().sort()
        counts_X = torch.histc(by_expert_S.float(), bins=len(self.up), min=0, max=len(self.up) - 1)
        ends_X = counts_X.cumsum(0, dtype=torch.int32)
        rows_SD = x_RD[order_S // self.per_token]  # permute: each token k times

        gate_SM, up_SM = F.grouped_mm(rows_SD, self.up.mT, offs=ends_X).chunk(2, -1)
        y_SD = F.grouped_mm(F.silu(gate_SM) * up_SM, self.down.mT, offs=ends_X)

        y_SD = y_SD * best_Rk.flatten()[order_S].unsqueeze(-1)
        back_S = torch.empty_like(order_S)
        back_S[order_S] = torch.arange(len(order_S), device=order_S.device)
        return y_SD[back_S].view(-1, self.per_token, x_RD.shape[-1]).sum(1)  # and unpermute

    def one_by_one(self, x_RD: Tensor, best_Rk: Tensor, chosen_Rk: Tensor) -> Tensor:
        """Take each expert's tokens out, run the expert, add the result where they came from."""
        y_RD = torch.zeros_like(x_RD)
        for expert in range(len(self.up)):
            token, place = torch.where(chosen_Rk == expert)
            if not len(token):
                continue
            gate, up = F.linear(x_RD[token], self.up[expert]).chunk(2, -1)
            y = F.linear(F.silu(gate) * up, self.down[expert])
            y_RD.index_add_(0, token, y * best_Rk[token, place].unsqueeze(-1))
        return y_RD
