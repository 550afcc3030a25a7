"""What the page asks about inference: the controls, and where they stand at first.

Each has the name that it has in an address; memlab.page.serve_answer makes an Engine of them.
"""

from __future__ import annotations

TRAIN, SERVE = "train", "serve"
NO_ENGINE = "none"  # transformers' own cache, which grows
LLAMA_CPP = "llama.cpp"
NF4 = "nf4"
PUBLISHED = "auto"
PLAIN = ("bf16", "fp16", "fp32")  # in which everything is stored
# Name, label, values in order with their labels; or name, label, least, most of a whole number.
CHOICES = (
    ("use", "Task", [(TRAIN, "Training"), (SERVE, "Inference (serving)")]),
    (
        "engine",
        "Inference engine",
        [
            ("vllm", "vLLM"),
            ("sglang", "SGLang"),
            (LLAMA_CPP, "llama.cpp"),
            (NO_ENGINE, "none (transformers alone)"),
        ],
    ),
    (
        "dtype",
        "Weight format",
        [
            (PUBLISHED, "as published"),
            ("bf16", "bf16"),
            ("fp16", "fp16"),
            ("fp32", "fp32"),
            ("fp8", "FP8, converted at load time"),
            ("fp8-block", "FP8, block scales"),
            ("fp8-channel", "FP8, per-channel scales"),
            ("awq", "AWQ, 4 bits"),
            ("gptq", "GPTQ, 4 bits"),
            (NF4, "NF4 (bitsandbytes)"),
        ],
    ),
    (
        "gguf",
        "Type of the GGUF file",
        [(name, name) for name in "Q4_0 Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K Q8_0 F16 BF16".split()],
    ),
    (
        "gguf_kv",
        "Type of the KV cache",
        [(name, name) for name in "f16 bf16 q8_0 q5_1 q5_0 q4_0 f32".split()],
    ),
    (
        "kv",
        "KV cache dtype",
        [
            ("auto", "auto (that of the weights)"),
            ("fp8", "FP8"),
            ("fp8_per_token_head", "FP8, per-token-head scales"),
            ("int8_per_token_head", "INT8, per-token-head scales"),
        ],
    ),
)
NUMBERS = (
    ("users", "Concurrent conversations", 1, 65536),
    ("context", "Context length, in tokens", 2, 4194304),
    ("share", "GPU memory utilization, in percent", 1, 100),
    ("cards", "Tensor-parallel GPUs (TP)", 1, 64),
    ("loaded", "Weights in the engine's log, in MiB (0: computed here)", 0, 4194304),
)
START = {
    "use": TRAIN,
    "engine": "vllm",
    "dtype": PUBLISHED,
    "gguf": "Q4_K_M",
    "gguf_kv": "f16",
    "kv": "auto",
    "users": 1,
    "context": 8192,
    "share": 92,
    "cards": 1,
    "loaded": 0,
}
