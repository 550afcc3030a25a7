"""Sentences of an answer that the whole package counted in the browser: memlab.page.counted."""

TENSOR_BY_TENSOR = "counted tensor by tensor in a simulated step, which ran in your browser"
LEFT_BY_RANKS = (
    "blocks that side streams leave unused in the reserved memory, and buffers of the "
    "communication library: no GPU has measured this step here yet"
)
NOT_COUNTED = "Neither does the package describe this step: {why}."
DEEPSPEED = (
    "DeepSpeed updates an fp32 copy of the weights: choose “bf16, updated in an fp32 copy” or fp32 "
    "as the precision, and the package counts this step."
)
# What the page says around it: book/calculator/count.mjs.
OFFER = "Run memlab itself here, and count this step"
PRICE = "Python and the package are fetched for that, 8 MB, once."
RUNNING = "memlab is counting this step …"
BROKEN = "Python did not start here: {problem}."
