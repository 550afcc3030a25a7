"""Case 8 of the capstone: mistral-small-24b on RTX 4090.

memlab rehearse --on 'RTX 4090' -- python capstone_08.py
memlab check --capstone capstone_08.py
"""

import tempfile

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM, BitsAndBytesConfig

PEAK = "19.4 GiB"  # your prediction, before you rehearse it: "18.2 GiB"
PHASE = "backward"  # of the peak: forward, backward or optimizer
LARGEST = "weights"  # there: weights, gradients, optimizer, activations, logits or other

config = AutoConfig.for_model(
    model_type="mistral",
    sliding_window=None,
    num_hidden_layers=40,
    hidden_size=5120,
    num_attention_heads=32,
    vocab_size=131072,
    intermediate_size=32768,
    num_key_value_heads=8,
    head_dim=128,
    tie_word_embeddings=False,
    max_position_embeddings=32768,
)
four_bits = BitsAndBytesConfig(
    load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
)
with tempfile.TemporaryDirectory() as folder:  # yours: the name of your model
    config.save_pretrained(folder)
    AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, quantization_config=four_bits
    )
model.enable_input_require_grads()
model.gradient_checkpointing_enable()
model = get_peft_model(
    model,
    LoraConfig(
        r=16,
        lora_alpha=32,
        target_modules=[
            "self_attn.q_proj",
            "self_attn.k_proj",
            "self_attn.v_proj",
            "self_attn.o_proj",
            "mlp.gate_proj",
            "mlp.up_proj",
            "mlp.down_proj",
        ],
        task_type="CAUSAL_LM",
    ),
)
model = model.to("cuda")
model.train()
base = model.get_base_model()
trained = [each for each in model.parameters() if each.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-4, foreach=True)


def loss_of(ids, chunks=16):
    """The loss of all next tokens, with the logits of one chunk of rows at a time."""
    hidden = base.model(input_ids=ids).last_hidden_state
    rows, labels = hidden[:, :-1].flatten(0, 1), ids[:, 1:].flatten()

    def part(rows, labels):
        logits = torch.nn.functional.linear(rows, base.lm_head.weight).float()
        return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")

    pairs = zip(rows.chunk(chunks), labels.chunk(chunks))
    return sum(checkpoint(part, *pair, use_reentrant=False) for pair in pairs) / labels.numel()


for step in range(3):
    ids = torch.randint(0, 3, (1, 4096), device="cuda")  # yours
    loss = loss_of(ids)
    loss.backward()
    del loss
    optimizer.step()
    optimizer.zero_grad()
