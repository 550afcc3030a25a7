"""TRL's GRPOTrainer: the loss of completions that were generated and scored before.

B completions of C tokens after prompts of T - C

The step is what follows the rollout. Its batch has no ids that stay: they are joined anew from
prompts and completions in each pass. Where a reference judges, it did so in the rollout: the batch
has one number a token of it, and a second model is there without being called.

Source      trl, trainer/grpo_trainer.py: _compute_loss, _get_per_token_logps_and_entropies,
            with loss_type="dapo" and one step of the optimizer for each rollout, the defaults
Leaves out  the numbers that are logged: some bytes for each token of a completion, for a moment
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from ..core.setting import Setting
from ..ops import Ops
from .fused_head import Output

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

    from .programs import Program

WANTED = ("log_probs", "entropy")


def loss(program: Program, batch: list[Tensor]) -> Tensor:
    """The loss of one micro-batch; it is divided by the tokens of all of them.

    Where a reference judged, the KL divergence needs its log-probabilities of the completions.
    """
    f, s, reference = program.f, program.setting, None
    if program.run.reference is not None:
        reference = Tensor((s.B, s.learned), "fp32", program.beside[0].storage)
    ids = f.new("cat", (s.B, s.T), "int64")
    mask = f.new("cat", (s.B, s.T), "int64")
    scored, entropies = _per_token(f, s, ids, lambda ids: program.forward(program.policy, ids))
    ratio = f.sub(scored, f.detach(scored))
    first = f.exp(ratio)
    second = _clamp(f, first)
    smaller = _smaller(f, _times(f, first), _times(f, second))
    each = f.neg(smaller)
    del smaller
    if reference is not None:
        apart = f.sub(reference, scored)
        divergence = f.shift(f.sub(f.exp(apart), f.sub(reference, scored)))
        del apart
        each = f.add(each, f.scale(divergence))
    items = f.new("div", (), "fp32")  # how many tokens all micro-batches have
    mean = f.over(f.total_of(_times(f, each)), items)
    del mask, entropies
    return mean


def _per_token(
    f: Ops, s: Setting, ids: Tensor, policy: Callable[[Tensor], Output]
) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies of the completions: copies, so that the rest can go."""
    padding = f.new("eq", (s.B, s.T), "bool")
    labels = f.new("masked_fill", (s.B, s.T), "int64")
    del padding
    output = policy(ids)
    parts = [f.part_of(each, s.B, s.learned) for each in output.found]
    scored, entropies = [f.cat([part]) for part in parts]
    del labels
    return scored, entropies


def _times(f: Ops, x: Tensor) -> Tensor:
    """x times what the batch has: advantages, or a mask, which stay anyway."""
    return f.scale(x)


def _clamp(f: Ops, x: Tensor) -> Tensor:
    """Keeps its input, and says in backward where that was inside of the bounds."""
    out = f.new("clamp", x.shape, x.dtype)
    shape = x.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        zero = f.new("scalar_tensor", (), grads[0].dtype)
        above, below = f.new("ge", shape, "bool"), f.new("le", shape, "bool")
        made = f.new("where", shape, grads[0].dtype)
        del zero, above, below
        return [made]

    f.apply("clamp", [x], [out], run, [("self", x)])
    return out


def _smaller(f: Ops, a: Tensor, b: Tensor) -> Tensor:
    """torch.min(a, b), which keeps both."""
    out = f.new("minimum", a.shape, a.dtype)
    shape, dtype = a.shape, a.dtype

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        found = []
        for _ in "ab":
            half = f.new("div", shape, dtype)
            equal = f.new("eq", shape, "bool")
            made = f.new("where", shape, dtype)
            other = f.new("lt", shape, "bool")
            del half, equal, other
            found.append(made)
        return found

    f.apply("minimum", [a, b], [out], run, [("self", a), ("other", b)])
    return out
