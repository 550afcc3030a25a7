"""Case 4 of the capstone: qwen3-0.6b on RTX 4090.

memlab rehearse --on 'RTX 4090' -- python capstone_04.py
memlab check --capstone capstone_04.py
"""

import torch
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM

PEAK = "6.4 GiB"  # your prediction, before you rehearse it: "18.2 GiB"
PHASE = "backward"  # of the peak: forward, backward or optimizer
LARGEST = "optimizer"  # there: weights, gradients, optimizer, activations, logits or other

config = AutoConfig.for_model(
    model_type="qwen3",
    pad_token_id=None,
    bos_token_id=None,
    eos_token_id=None,
    num_hidden_layers=28,
    hidden_size=1024,
    num_attention_heads=16,
    vocab_size=151936,
    intermediate_size=3072,
    num_key_value_heads=8,
    head_dim=128,
    tie_word_embeddings=True,
    attention_bias=False,
    max_position_embeddings=40960,
)
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)  # yours
model.gradient_checkpointing_enable()
model = model.to("cuda")
model.train()
trained = [each for each in model.parameters() if each.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-4, foreach=True)


def loss_of(ids, chunks=16):
    """The loss of all next tokens, with the logits of one chunk of rows at a time."""
    hidden = model.model(input_ids=ids).last_hidden_state
    rows, labels = hidden[:, :-1].flatten(0, 1), ids[:, 1:].flatten()

    def part(rows, labels):
        logits = torch.nn.functional.linear(rows, model.lm_head.weight).float()
        return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")

    pairs = zip(rows.chunk(chunks), labels.chunk(chunks))
    return sum(checkpoint(part, *pair, use_reentrant=False) for pair in pairs) / labels.numel()


for step in range(3):
    ids = torch.randint(0, 3, (1, 16384), device="cuda")  # yours
    loss = loss_of(ids)
    loss.backward()
    del loss
    optimizer.step()
    optimizer.zero_grad()
