"""A batch planner: which batch fits at which length, in how many pieces, and how fast it may be.

Letters     B batch, T tokens of a sequence, L layers, N·H width of attention, P parameters,
            V vocabulary

The plan comes from simulated steps (memlab.fit), the speed limits from a card's stated peaks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..estimate import peak
from ..fit import largest_batch, limit_of
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..terms.context import CONTEXT

# A decoder of 196 M parameters with a 200k vocabulary and a narrow table: the model of a field
# note, whose program states the shape (configs/model_config.yaml in yxanul/yxanul_0.6B at 9dca5d1).
# Its head goes back through the same projection; memlab's has one of its own, D · E weights more.
SMALL_WIDE = Model(
    name="small-wide",
    layers=28,
    d_model=768,
    d_ff=2048,
    heads=12,
    kv_heads=2,
    vocab=200_005,
    embed_dim=128,
    tied=True,
)

# What a loss does with all logits in bf16, computed in fp32: bytes read and written for each of
# them, and those of the products that make and use them. The few that are no [B, T, V] are left.
LOSS_TRAFFIC = {
    "head writes bf16": 2,
    "cast to fp32": 2 + 4,
    "log-softmax": 4 + 4,
    "gradient of the mean, as a whole tensor": 4,
    "gradient of log-softmax": 4 + 4 + 4,
    "cast to bf16": 4 + 2,
    "two products read it": 2 + 2,
}


OWN_BLOCKS = Run(implementation="memlab")


@dataclass(frozen=True)
class Roofline:
    """A card's stated peaks: the time of a piece of work is at least the longer of the two.

    flops       dense products a second, adding in fp32, by format
    bandwidth   bytes a second between the chip and its memory
    """

    name: str
    flops: dict[str, float]
    bandwidth: float

    def ridge(self, kind: str) -> float:
        """FLOP for each byte above which products, and not memory, are the limit."""
        return self.flops[kind] / self.bandwidth


# NVIDIA Ada GPU architecture, V2.01: peak tensor TFLOPS with FP32 accumulate, without sparsity.
RTX_4090 = Roofline("RTX 4090", {"bf16": 165.2e12, "fp8": 330.3e12}, 1008e9)
# 528 tensor cores, 1,024 FLOP a clock each, 1.83 GHz: https://glennklockwood.com/garden/peak-FLOPS;
# 3,350 GB/s: https://archive-lib.hpctech.co.jp/gpuproduct/nvidia-h100.html (SXM).
H100 = Roofline("H100 80GB", {"bf16": 528 * 1024 * 1.83e9}, 3350e9)
# 112 tensor cores at 1.777 GHz, 192 bits of 15 Gbit/s: https://sysrqmts.com/ru/gpus/compare/
# nvidia-geforce-rtx-3060-vs-nvidia-rtx-a6000. No peak is stated for it: 128 FLOP a clock are those
# with which 512 cores at 2.52 GHz make the RTX 4090's stated 165.2.
RTX_3060 = Roofline("RTX 3060", {"bf16": 112 * 128 * 1.777e9}, 360e9)


@dataclass(frozen=True)
class Stage:
    """One length of a curriculum.

    wanted      sequences of one optimizer step
    whole       bytes of the step if they are taken at once
    batch       the most that fit at once; of a micro-batch where `wanted` do not fit
    pieces      micro-batches for one optimizer step: 1 where all fit, 0 where nothing does
    peak        bytes of the step with that batch
    """

    tokens: int
    wanted: int
    whole: int
    batch: int
    pieces: int
    peak: int


def plan(
    model: Model,
    stages: Iterable[tuple[int, int]],
    recipe: Recipe | str = "bf16",
    run: Run = OWN_BLOCKS,
    *,
    on: str | int,
    spare: int = CONTEXT,
) -> list[Stage]:
    """For each (T, B): does the step fit whole, and if not, in how few pieces?

    Formula     pieces = ceil(B / the largest micro-batch), gradients waiting from the second on
    run         all but batch, tokens and micro-batches of it: memlab's own blocks, as the note's
                program is no model of transformers
    Leaves out  what memlab.fit leaves out; the last piece may be smaller than the others
    Raises      ValueError as memlab.fit does
    """
    limit, _ = limit_of(on, spare)
    found = []
    for tokens, wanted in stages:
        all_at_once = run.replace(batch=wanted, tokens=tokens)
        whole = peak(model, recipe, all_at_once)
        if whole <= limit:
            found.append(Stage(tokens, wanted, whole, wanted, 1, whole))
            continue
        split = all_at_once.replace(micro_batches=2)
        most = min(wanted, largest_batch(model, recipe, split, on=on, spare=spare).value)
        pieces = -(-wanted // most) if most else 0
        held = peak(model, recipe, split.replace(batch=max(1, most)))
        found.append(Stage(tokens, wanted, whole, most, pieces, held))
    return found


def flops_per_token(model: Model, tokens: int) -> int:
    """Floating-point operations of forward and backward for one token.

    Formula     6 · (weights that are multiplied with) + 6 · L · N·H · T, for causal attention
    Unit        FLOP
    Source      Kaplan et al. 2020, arXiv:2001.08361, section 2.1, with the output head, which is
                not small here; half of all scores, since attention is causal
    Leaves out  norms, softmax, activation functions, the optimizer, whatever is computed twice
    """
    parts = model.parameters()
    multiplied = model.parameter_count - parts["norm"] - parts["positions"]
    if not model.tied:
        multiplied -= parts["embedding"]  # a table that is only looked up in
    attention = 6 * model.layers * model.heads * model.head_dim * tokens
    return 6 * multiplied + attention


def seconds_per_token(
    model: Model, tokens: int, roof: Roofline, kind: str = "bf16"
) -> dict[str, float]:
    """The least time of a token's products, and of moving its logits when all are made at once.

    Formula     FLOP / stated FLOP/s; V · sum(LOSS_TRAFFIC) / bandwidth
    Unit        seconds
    kind        of the products; in FP8 those of the head stay in bf16 where V is no multiple of 16,
                since no kernel of FP8 takes such a matrix (memlab.lab.fp8.kernel_takes)
    Leaves out  all other traffic, launches, the optimizer: a bound, and no forecast
    """
    traffic = model.vocab * sum(LOSS_TRAFFIC.values())
    head = 6 * (model.embed_dim or model.d_model) * model.vocab
    of_head = "bf16" if kind == "fp8" and model.vocab % 16 else kind
    layers = flops_per_token(model, tokens) - head
    return {
        "products": layers / roof.flops[kind] + head / roof.flops[of_head],
        "logits": traffic / roof.bandwidth,
    }


def intensity(rows: int, inputs: int, outputs: int, bytes_each: int = 2) -> float:
    """FLOP for each byte of a linear layer whose output is bf16.

    Formula     2 · R · C · O / (b · (R · C + C · O) + 2 · R · O)
    """
    moved = bytes_each * (rows * inputs + inputs * outputs) + 2 * rows * outputs
    return 2 * rows * inputs * outputs / moved


__all__ = [
    "LOSS_TRAFFIC",
    "RTX_4090",
    "SMALL_WIDE",
    "Roofline",
    "Stage",
    "flops_per_token",
    "intensity",
    "plan",
    "seconds_per_token",
]
