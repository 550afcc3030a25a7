"""What is described of a step under FSDP2, and what is refused, by name."""

from __future__ import annotations

from ....base.message import Message
from ....base.not_described import NotDescribed
from ....families import proven, record_of
from ....model import Model
from ....recipe import Recipe
from ....run import Run
from ..supported import ALONE, BY_VALUE, check_said


def check_sharded(model: Model, recipe: Recipe, run: Run) -> None:
    """Refuse what is not described of a step under FSDP2.

    Raises      ValueError that names it
    """
    if run.devices.experts.ranks > 1:
        check_dispatched(model, recipe, run)
    theirs = run.loop == "trainer"
    described = ["lora"] + ["loop", "clip"] * theirs
    fields = [field for field in ALONE if field not in described]
    check_said(run, fields, "is not described beside FSDP2")
    if run.lora is not None:
        _check_adapted(run)
    if theirs:
        _check_accelerated(model, recipe, run)
    if recipe.master or recipe.accumulator or recipe.gradients not in (None, recipe.weights):
        raise NotDescribed(
            f"recipe {recipe.name!r}: copies beside weights are not described on FSDP2"
        )
    if recipe.optimizer not in BY_VALUE:
        pattern = "{optimizer} is not described on FSDP2's parts; known: {known}"
        raise NotDescribed(Message(pattern, optimizer=recipe.optimizer, known=", ".join(BY_VALUE)))
    if recipe.autocast and run.devices.policy.param_dtype:
        raise ValueError(
            f"param_dtype={run.devices.policy.param_dtype!r} beside autocast: describe one of them"
        )


def _check_adapted(run: Run) -> None:
    """Refuse adapters under FSDP2 whose parts are not described.

    Source      accelerate, utils/fsdp_utils.py: fsdp2_prepare_model, which leaves
                bitsandbytes' codes whole on each rank
    """
    assert run.lora is not None
    if run.lora.base is not None:
        raise NotDescribed(
            f"base={run.lora.base!r} is not described beside FSDP2: fully_shard cannot divide "
            "bitsandbytes' codes in uint8, which are no numbers, and bnb_4bit_quant_storage is "
            "not described; leave the base in the weights' own format"
        )
    if run.lora.saved and run.loop == "trainer":
        raise NotDescribed(
            f"saved={run.lora.saved!r} is not described beside Trainer's own FSDP2, which makes a "
            "group of a table and not of its trained copy"
        )
    if run.devices.experts.ranks > 1:
        raise NotDescribed(f"{run.lora.told()} is not described beside expert parallelism")


def _check_accelerated(model: Model, recipe: Recipe, run: Run) -> None:
    """Refuse what Trainer's own FSDP2 does not do, or what is not described of it.

    Source      accelerate, utils/fsdp_utils.py and accelerator.py; transformers,
                trainer.py: _run_epoch
    """
    beside, devices = "is not described beside Trainer's own FSDP2", run.devices
    if not record_of(model.family).proves("fsdp_trainer"):
        known = ", ".join(proven("fsdp_trainer"))
        raise NotDescribed(f"{model.family!r} {beside}; known: {known}")
    if devices.policy.cpu_offload not in (None, "pinned"):
        raise NotDescribed(
            f"cpu_offload={devices.policy.cpu_offload!r} {beside}: accelerate's policy pins; "
            "'pinned' is"
        )
    if run.holds:
        raise NotDescribed(f"holds={run.holds!r} {beside}")
    narrow, wide = devices.policy.param_dtype, devices.policy.reduce_dtype
    if recipe.autocast:
        raise ValueError(
            f"autocast={recipe.autocast!r} with loop='trainer' on FSDP2: bf16=True is no autocast "
            "there; say param_dtype='bf16' with fp32 weights"
        )
    if narrow not in (None, "bf16"):
        raise NotDescribed(f"param_dtype={narrow!r} {beside}; known: bf16, which is bf16=True")
    if wide not in (None, narrow):
        raise ValueError(
            f"reduce_dtype={wide!r} with loop='trainer': accelerate reduces in the format that it "
            f"computes in, param_dtype={narrow!r}"
        )
    if narrow and recipe.weights != "fp32" and run.lora is None:
        raise ValueError(
            f"recipe {recipe.name!r} with param_dtype={narrow!r} and loop='trainer': accelerate "
            "upcasts all weights; say fp32"
        )
    if run.micro_batches > 1 and devices.policy.gradient_sync == "every":
        raise ValueError(
            f"gradient_sync='every' with micro_batches={run.micro_batches} and loop='trainer': "
            "Trainer reduces after the last one; say gradient_sync='last'"
        )


def check_dispatched(model: Model, recipe: Recipe, run: Run) -> None:
    """Refuse what transformers' own expert parallelism does not do, or what is not described of it.

    Source      transformers, distributed/configuration_utils.py, fsdp.py, mixin.py
    Raises      ValueError that names it
    """
    beside, devices = "is not described beside expert parallelism", run.devices
    known = record_of(model.family).proves("expert_parallel")
    if run.implementation != "transformers" or not known:
        raise NotDescribed(
            f"{run.implementation} {model.family!r} {beside}; known: transformers' "
            + ", ".join(proven("expert_parallel"))
        )
    if model.tied:
        raise NotDescribed(
            f"a tied table {beside}: transformers 5.23 stores and gathers it twice there, once in "
            "a group of the root's"
        )
    check_said(run, ("loop", "clip", "holds"), beside)
    if recipe.autocast:
        raise NotDescribed(
            f"autocast={recipe.autocast!r} {beside}; fp32 with param_dtype='bf16' is"
        )
    for field, value in devices.told().items():
        if field in ("reshard_after_forward", "cpu_offload"):
            raise NotDescribed(f"{field}={value!r} {beside}")
    both = (devices.policy.param_dtype, devices.policy.reduce_dtype)
    if both not in ((None, None), ("bf16", "fp32")):
        raise NotDescribed(
            f"param_dtype={both[0]!r}, reduce_dtype={both[1]!r} {beside}: "
            "fsdp_mixed_precision=True is 'bf16' with 'fp32'; without it neither is said"
        )
    devices.check(model)
