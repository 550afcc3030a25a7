"""A picture and a question: Qwen2.5-VL with gradient checkpointing."""

import torch
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
text = dict(
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    vocab_size=1000,
    rope_scaling={"type": "mrope", "mrope_section": [2, 3, 3], "rope_type": "default"},
)
picture = dict(depth=2, hidden_size=64, num_heads=4, intermediate_size=128, out_hidden_size=64)
config = Qwen2_5_VLConfig(
    text_config=text,
    vision_config=picture,
    image_token_id=990,
    vision_start_token_id=991,
    vision_end_token_id=992,
)
model = Qwen2_5_VLForConditionalGeneration._from_config(config).to(DEVICE).train()
model.gradient_checkpointing_enable()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
grid = torch.tensor([[1, 16, 16]])
places = 16 * 16 // 4
for _ in range(3):
    words = [torch.randint(0, 900, (1, count)) for count in (10, 50)]
    marks = [torch.tensor([[991]]), torch.full((1, places), 990), torch.tensor([[992]])]
    ids = torch.cat([words[0], *marks, words[1]], 1).to(DEVICE)
    loss = model(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        mm_token_type_ids=(ids == 990).int(),
        pixel_values=torch.randn(16 * 16, 1176, device=DEVICE),
        image_grid_thw=grid.to(DEVICE),
        labels=ids,
    ).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
