"""Case 6 of the capstone: smollm3-3b on RTX 4090.

memlab rehearse --on 'RTX 4090' -- python capstone_06.py
memlab check --capstone capstone_06.py
"""

import torch
from transformers import AutoConfig, AutoModelForCausalLM

PEAK = "18.8 GiB"  # your prediction, before you rehearse it: "18.2 GiB"
PHASE = "backward"  # of the peak: forward, backward or optimizer
LARGEST = "optimizer"  # there: weights, gradients, optimizer, activations, logits or other

config = AutoConfig.for_model(
    model_type="smollm3",
    pad_token_id=None,
    bos_token_id=None,
    eos_token_id=None,
    num_hidden_layers=36,
    hidden_size=2048,
    num_attention_heads=16,
    vocab_size=128256,
    intermediate_size=11008,
    num_key_value_heads=4,
    head_dim=128,
    tie_word_embeddings=True,
    attention_bias=False,
    mlp_bias=False,
    max_position_embeddings=65536,
)
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)  # yours
model.gradient_checkpointing_enable()
model = model.to("cuda")
model.train()
trained = [each for each in model.parameters() if each.requires_grad]
optimizers = {each: torch.optim.AdamW([each], lr=1e-4, foreach=False) for each in trained}


def update(weight):
    optimizers[weight].step()
    optimizers[weight].zero_grad()


for each in trained:
    each.register_post_accumulate_grad_hook(update)
for step in range(3):
    ids = torch.randint(0, 3, (1, 1024), device="cuda")  # yours
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    del loss
