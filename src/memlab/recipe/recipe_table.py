"""The bytes per parameter that people quote, as recipes: each figure with what it hides."""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

NAMED: dict[str, dict[str, Any]] = {
    # 4 + 4 + 8: torch.optim.AdamW on an fp32 module, nothing else.
    "fp32": dict(
        hides="nothing resident; activations, logits and temporaries come on top",
        source="torch.optim.AdamW on float32 parameters",
    ),
    # The same 16, and a bf16 copy of each weight of a matrix product from forward to backward.
    "autocast": dict(
        autocast="bf16",
        hides="the bf16 copies of the weights that autograd keeps from forward to backward (+2)",
        source="torch.autocast documentation, CPU and CUDA",
    ),
    # 2 + 2 + 4
    "bf16": dict(
        weights="bf16",
        gradients="bf16",
        hides="no master copy: an update below half a unit in the last place of bf16 is lost",
        source="torchao, training in full BF16",
    ),
    # 2 + 8
    "scaling-book": dict(
        weights="bf16",
        gradients=None,
        states=("fp32", "fp32"),
        hides="the gradients, and there is no fp32 master copy",
        source="Austin et al. 2025, How to Scale Your Model, chapter Training",
    ),
    # 4 + 8
    "maxtext": dict(
        gradients=None,
        hides="the gradients",
        source="AI-Hypercomputer/maxtext issue 606",
    ),
    # 2 + 2 + 4 + 8
    "zero": dict(
        weights="bf16",
        master="fp32",
        gradients="bf16",
        hides="gradients are kept and summed in 16 bits",
        source="Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1",
    ),
    # 2 + 4 + 4 + 8
    "megatron": dict(
        weights="bf16",
        master="fp32",
        gradients="fp32",
        hides="each 16-bit gradient that lives until it is added to the fp32 one",
        source="NVIDIA/Megatron-LM issue 654; Hugging Face, model memory anatomy",
    ),
    # 2 + 2 + 4 + 4 + 8
    "playbook": dict(
        weights="bf16",
        master="fp32",
        gradients="bf16",
        accumulator="fp32",
        hides="nothing resident: both gradient copies are counted as if they lived all the step",
        source="Hugging Face 2025, The Ultra-Scale Playbook; Smith et al. 2022, arXiv:2201.11990",
    ),
    "sgd": dict(
        optimizer="sgd",
        hides="plain SGD seldom trains a transformer as well as AdamW does",
        source="torch.optim.SGD",
    ),
    "adafactor": dict(
        optimizer="adafactor",
        hides="no first moment; an update as large as each matrix, of all at once with foreach",
        source="torch.optim.Adafactor; Shazeer & Stern 2018, arXiv:1804.04235",
    ),
    "hf_adafactor": dict(
        weights="bf16",
        gradients="bf16",
        optimizer="hf_adafactor",
        hides="for a moment gradient, weights and update of each tensor in fp32",
        source='transformers.Trainer(optim="adafactor") on a model in bf16',
    ),
    "lion": dict(
        optimizer="lion",
        hides="an update as large as each tensor, for a moment",
        source="Chen et al. 2023, arXiv:2302.06675",
    ),
    "bnb_adamw8bit": dict(
        optimizer="bnb_adamw8bit",
        hides="tensors under 4,096 values keep full states, and with Trainer every embedding does",
        source="bitsandbytes.optim.AdamW8bit; Dettmers et al. 2022, arXiv:2110.02861",
    ),
    "adamw8bit": dict(
        optimizer="adamw8bit",
        hides="tensors under 4,096 values keep full states; lookup tables and scales",
        source="torchao.optim.AdamW8bit; Dettmers et al. 2022, arXiv:2110.02861",
    ),
    "adamw4bit": dict(
        optimizer="adamw4bit",
        hides="tensors under 4,096 values keep full states; training is visibly noisier",
        source="torchao.optim.AdamW4bit; Li et al. 2023, arXiv:2309.01507",
    ),
    "adamw_fp8": dict(
        optimizer="adamw_fp8",
        hides="tensors under 4,096 values keep full states; scales",
        source="torchao.optim.AdamWFp8",
    ),
    "muon": dict(
        optimizer="muon",
        hides="embeddings, head, norms and biases stay with AdamW at twice the state",
        source="torch.optim.Muon; Jordan et al. 2024",
    ),
    "muon8": dict(
        optimizer="muon",
        states=("int8/128",),
        hides="embeddings, head, norms and biases stay with AdamW, in full",
        source="memlab.lab.muon8",
    ),
}
