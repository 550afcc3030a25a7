"""The loops that run the steps, as data: whose program each is, and what it does by itself.

One record a loop. What it holds beside a step and how it makes a loss is memlab.step.loops; a test
reads the defaults from the installed libraries (tests/test_program_defaults.py).
"""

from __future__ import annotations

from ..base.frozen import dataclass, replace

EVERYWHERE = ("cuda", "cpu")  # backends
TEXTS = ("full", "padded", "packed")  # how the rows of a batch are filled
REFERENCES = ("model", "precomputed")


@dataclass(frozen=True)
class Defaults:
    """What a program takes by itself.

    weights     the format in which it loads a model; None: the one that the config says
    autocast    the backends on which its forward pass is under autocast to bf16
    checkpoint  none, or block: each layer's activations are computed again in backward
    clip        whether the gradients' norm is bounded, by 1.0
    fused       the backends on which AdamW is the fused one; torch's own choice on others
    loss        plain: the model's own; fused_head: TRL's
    adapters    the format of adapters beside a base of codes; None: peft's own
    prepares    whether a base of codes has been through peft's preparation
    """

    weights: str | None = None
    autocast: tuple[str, ...] = ()
    checkpoint: str = "none"
    clip: bool = True
    fused: tuple[str, ...] = EVERYWHERE
    loss: str = "plain"
    adapters: str | None = None
    prepares: bool = False


@dataclass(frozen=True)
class Loop:
    """One loop.

    label       how a form calls it; `called`: what people call it in their own programs, "" for a
                loop of one's own; `config`: the class of its arguments, where it has one
    trainer     whether it is transformers' Trainer or made from it; `trl`: TRL's, which may learn
                an answer alone
    texts       how its rows may be filled
    batch       what each micro-batch has on the device, all of the shape of the ids; (): others
    keeps_output    whether what the model returns lives until the next forward pass is over
    judged      whether it compares the model with a reference; `taught`: with a teacher
    rolls_out   whether it makes the texts that it learns
    """

    label: str
    defaults: Defaults
    called: str = ""
    config: str = ""
    trainer: bool = False
    trl: bool = False
    texts: tuple[str, ...] = TEXTS
    batch: tuple[str, ...] = ()
    keeps_output: bool = False
    judged: bool = False
    taught: bool = False
    rolls_out: bool = False


# A loop that is written by hand, as PyTorch's and peft's guides write it.
OWN = Defaults(clip=False, fused=(), prepares=True)
# trl: trainer/base_config.py (bf16, gradient_checkpointing); trainer/utils.py:
# create_model_from_path (dtype="float32"); sft_trainer.py, dpo_trainer.py, grpo_trainer.py,
# distillation_trainer.py: adapters of a quantized model are made bf16.
OF_TRL = Defaults("fp32", EVERYWHERE, "block", adapters="bf16")
WITH_HEAD = replace(OF_TRL, loss="fused_head")
LOOPS = {
    "plain": Loop("plain PyTorch", OWN),
    "keeps-outputs": Loop("plain PyTorch, outputs of the last step kept", OWN, keeps_output=True),
    # karpathy/nanoGPT, train.py: dtype='bfloat16', a nullcontext() on a CPU, grad_clip=1.0;
    # model.py: configure_optimizers, fused on CUDA.
    "nanogpt": Loop(
        "nanoGPT: train.py",
        Defaults("fp32", ("cuda",), fused=("cuda",)),
        "nanoGPT",
        texts=("full",),
        keeps_output=True,
    ),
    # transformers, training_args.py: bf16=False, gradient_checkpointing=None,
    # max_grad_norm=1.0, optim="adamw_torch_fused"; the model is loaded with dtype="auto".
    "trainer": Loop(
        "transformers: Trainer",
        Defaults(prepares=True),
        "Trainer",
        "TrainingArguments",
        trainer=True,
        batch=("ids", "labels"),
    ),
    "sft": Loop(
        "TRL: SFTTrainer",
        WITH_HEAD,
        "SFTTrainer",
        "SFTConfig",
        trainer=True,
        trl=True,
        batch=("ids", "labels", "attention_mask"),
    ),
    "dpo": Loop(
        "TRL: DPOTrainer (batches of pairs)",
        WITH_HEAD,
        "DPOTrainer",
        "DPOConfig",
        trainer=True,
        trl=True,
        texts=("full", "padded"),
        batch=("ids", "attention_mask", "completion_mask"),
        judged=True,
    ),
    "grpo": Loop(
        "TRL: GRPOTrainer (after the rollout)",
        WITH_HEAD,
        "GRPOTrainer",
        "GRPOConfig",
        trainer=True,
        trl=True,
        texts=("full",),
        judged=True,
        rolls_out=True,
    ),
    "distillation": Loop(
        "TRL: DistillationTrainer (after the generation)",
        OF_TRL,
        "DistillationTrainer",
        "DistillationConfig",
        trainer=True,
        trl=True,
        texts=("full",),
        taught=True,
        rolls_out=True,
    ),
    "gkd": Loop(
        "TRL: GKDTrainer (all logits of student and teacher)",
        OF_TRL,
        "GKDTrainer",
        "GKDConfig",
        trainer=True,
        trl=True,
        texts=("full",),
        batch=("ids", "labels", "attention_mask", "starts", "ends"),
        taught=True,
    ),
}


def which(mark: str) -> tuple[str, ...]:
    """The loops of which this is so: which("trl")."""
    return tuple([name for name, loop in LOOPS.items() if getattr(loop, mark)])


TRAINERS, TRL, TAUGHT, JUDGED = which("trainer"), which("trl"), which("taught"), which("judged")
HEADED = tuple([name for name in LOOPS if LOOPS[name].defaults.loss == "fused_head"])
