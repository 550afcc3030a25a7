"""Sentences about llama.cpp: as in memlab.page.serve_words."""

FILE_KEPT = "every tensor in its type of a {file} file, but the input embedding"
SLOTS_KEPT = (
    "{users} · 2 · L · T · K · H in {cache}, for as many slots, T rounded up to a multiple of 256"
)
OF_CUDA = "the CUDA context, {size}, which the line leaves free already"
COMPUTE_BUFFER = (
    "the compute buffer, which ggml's planner lays out for the largest graph of your build, GPU "
    "and batch; the log of llama.cpp says it"
)
ON_THE_CPU = "the input embedding, {size} of the file, which llama.cpp keeps in the CPU's memory"
IMATRIX = "other types that an importance matrix (imatrix) gives some tensors"
OF_METAL = "The line: {limit}, what Metal recommends for the GPU of {card}."
MORE_OF_METAL = (
    "what newer versions of macOS recommend beyond the reading here, and what "
    "iogpu.wired_limit_mb adds"
)
