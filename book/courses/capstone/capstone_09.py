"""Case 9 of the capstone: llama-3-8b on RTX 4090.

memlab rehearse --on 'RTX 4090' -- python capstone_09.py
memlab check --capstone capstone_09.py
"""

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM

PEAK = "19.6 GiB"  # your prediction, before you rehearse it: "18.2 GiB"
PHASE = "backward"  # of the peak: forward, backward or optimizer
LARGEST = "weights"  # there: weights, gradients, optimizer, activations, logits or other

config = AutoConfig.for_model(
    model_type="llama",
    pad_token_id=None,
    bos_token_id=None,
    eos_token_id=None,
    num_hidden_layers=32,
    hidden_size=4096,
    num_attention_heads=32,
    vocab_size=128256,
    intermediate_size=14336,
    num_key_value_heads=8,
    head_dim=128,
    tie_word_embeddings=False,
    attention_bias=False,
    mlp_bias=False,
    max_position_embeddings=8192,
)
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)  # yours
model.enable_input_require_grads()
model.gradient_checkpointing_enable({"use_reentrant": True})
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
    with torch.autograd.graph.save_on_cpu():  # the input of each layer waits on the host
        hidden = base.model(input_ids=ids).last_hidden_state
    rows, labels = hidden[:, :-1].flatten(0, 1), ids[:, 1:].flatten()

    def part(rows, labels):
        logits = torch.nn.functional.linear(rows, base.lm_head.weight).float()
        return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")

    pairs = zip(rows.chunk(chunks), labels.chunk(chunks))
    return sum(checkpoint(part, *pair, use_reentrant=False) for pair in pairs) / labels.numel()


for step in range(3):
    ids = torch.randint(0, 3, (1, 11264), device="cuda")  # yours
    loss = loss_of(ids)
    loss.backward()
    del loss
    optimizer.step()
    optimizer.zero_grad()
