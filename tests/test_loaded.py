"""A whole model through transformers and bitsandbytes: its bytes, and that it still answers."""

import pytest
import torch

from memlab import Model, Run
from memlab.lab.loaded import beside, loaded, stored
from memlab.lab.quiet import quiet
from memlab.lab.subject import subject
from memlab.measure import storage_bytes

TINY = Model.preset("tiny-llama").replace(layers=1, d_ff=384)

with quiet():
    from transformers import BitsAndBytesConfig

NF4 = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
MATRICES, VALUES, ROWS = 7, 196_608, 1_280  # of the layer that is quantized


@pytest.mark.parametrize(
    "how, more",
    [
        (None, 2 * VALUES),
        ({"load_in_8bit": True}, VALUES + 4 * ROWS),
        (NF4, VALUES // 2 + VALUES // 64 * 4 + MATRICES * 64),
    ],
    ids=["bf16", "LLM.int8", "NF4"],
)
def test_codes_scales_and_tables_are_counted_and_the_rest_is_as_it_was(how, more):
    module = loaded(subject(TINY, "bf16", Run.cpu()), how and BitsAndBytesConfig(**how))
    assert stored(module) == 2 * (TINY.parameter_count - VALUES) + more
    assert module.lm_head.weight.dtype == torch.bfloat16
    if how is None:
        assert not any(beside(weight) for weight in module.parameters())
    else:
        assert stored(module) > storage_bytes(list(module.parameters()))


def test_what_is_loaded_computes_nearly_the_same():
    torch.manual_seed(0)
    plain = subject(TINY, "bf16", Run.cpu()).eval()
    ids = torch.arange(8).unsqueeze(0)
    with torch.no_grad():
        wanted = plain(input_ids=ids).logits.float()
        found = loaded(plain, BitsAndBytesConfig(**NF4)).eval()(input_ids=ids).logits.float()
        same = loaded(plain).eval()(input_ids=ids).logits.float()
    assert torch.equal(same, wanted)
    assert 0 < (found - wanted).norm() / wanted.norm() < 0.5
