"""Sentences of an answer that the whole package counted in the browser: memlab.page.simulated."""

TENSOR_BY_TENSOR = "computed tensor by tensor in a simulated step, which ran in your browser"
LEFT_BY_RANKS = (
    "blocks that side streams leave unused in the reserved memory, and buffers of the "
    "communication library: this step has not been measured on a GPU here yet"
)
NOT_COUNTED = "The package does not support this step either: {why}."
# What the page says around it: book/calculator/count.mjs.
OFFER = "Run memlab in the browser and compute this step"
OFFER_CARDS = "Run memlab in the browser and find on how many GPUs it fits"
OFFER_KEPT = "Run memlab in the browser and compute the saved step"
PRICE = "This downloads Python and the package, 8 MB, once."
RUNNING = "memlab is computing this step …"
BROKEN = "Python did not start here: {problem}."
# What memlab.step says of a step that it does not describe; a test holds each against its maker.
OF_STEPS = (
    "{what} is not described beside {where}",
    "{what} is not described beside {where}; known: {known}",
    "DeepSpeed's ZeRO {stage}",
    "a pipeline",
    "tensor parallelism",
    "{optimizer} is not described on FSDP2's parts; known: {known}",
    "devices={devices}: the step of one device alone is described, or that of one of DDP's ranks "
    "(data alone), of FSDP2's (ZeRO 3 over data and context alone), of DeepSpeed's (ZeRO 1 and 2), "
    "of a pipeline's alone, or of ranks that divide each matrix (tensor) alone",
    "H={size} on cuda: a multiple of 8 is described",
    "H={size} with shared key/value heads is not described",
    "{what} is not described; known: {known}",
    "loss={loss}: {family} scales its logits, and a loss in chunks of rows is made from the output "
    "head alone; loss='plain' is described",
)
