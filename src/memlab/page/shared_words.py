"""Sentences that others say on the page, listed for translators: the page's engine needs none.

As in memlab.page.words, what differs has a name in braces; a test holds each against its maker.
"""

# What memlab's functions say to a state of this page, and after them what the page's scripts say.
ELSEWHERE = (
    "tensor={tensor} does not divide {letter}={size} ({what})",
    "tensor={tensor}: the experts of a mixture are cut by plan='transformers' alone",
    "the {family} config has no {key}",
    "D={width} is not a multiple of N={heads}, which {family} asks for",
    "D={width} is not a multiple of N={heads} (width per head); give head_dim for another width",
    "{what} is not described: {remedy}",
    "take the config of the model that was quantized",
    "query heads",
    "feed-forward width",
    "key/value heads",
    "stages={stages} is more than L={layers}; a stage has at least one layer",
    "zero={zero} is not supported for {optimizer}, whose states are made from whole rows and "
    "columns",
    "loss_chunks={chunks}; between 1 and {rows} (the rows) is needed",
    "{name}: {inputs} inputs do not fill blocks of {block}",
    "H={size} (width of a head) is odd; rotary positions turn pairs",
    "completion={completion}; of {tokens} tokens 1 to {most} can be the completion",
    "loss={loss} is supported on one GPU only",
    "{name} is {kind}: configs of causal language models are supported, which predict the next "
    "token (architectures ...ForCausalLM, or is_decoder true). For any other model run your "
    "training script, memlab rehearse -- python train.py, or trace a step that you write, memlab "
    "trace FILE.py:FUNCTION",
    "a part of a diffusers pipeline",
    "an encoder-decoder",
    "an encoder",
    "made for another task",
    "a model without an output head",
    "a dual encoder of texts and of images or audio, like CLIP",
    "a vision model",
    "an audio model",
    "a time series model",
    "a retrieval model",
    "a part of a larger model, whose whole config.json is needed",
)
# What memlab.run.program_defaults says that a program takes by itself.
OF_PROGRAMS = (
    "{program}'s defaults: {what}",
    "{weights} weights under bf16 autocast",
    "{weights} weights",
    "adapters in {format}",
    "gradient checkpointing",
    "no checkpointing",
    "clipping at 1.0",
    "fused AdamW",
    "logits in tiles",
)
# What memlab.engines says to a state that asks about serving.
OF_ENGINES = (
    "tensor={tensor} does not divide {letter}={size}",
    "R={ranks} ranks neither divide K={heads} heads nor are a multiple",
    "SGLang is not supported for {family}, which has sliding windows; vLLM is",
    "{engine} is not supported for {family}",
    "an engine is not supported for llama4_text, which has chunked attention",
    "kv_dtype={format} is per head; a latent has none",
    "tensor={tensor} cuts a packed matrix at {size}, no multiple of the {group} that share a scale",
)
SCRIPTS = (
    "No answer to this question.",
    "Compute it without its quantization_config",
    "Compute QLoRA on its NF4 base model",
    "The address is too long to be one of this page.",
    "The address: “{name}” is not an option of this page.",
    "The address: “{value}” is not a choice of {name}.",
    "The address: “{value}” is no whole number for {name}.",
    "The address: {problem}.",
    "The config: a file of this size is no config.json.",
    "The config: {problem}.",
    "{count} characters are no config.json",
    "this is nested too deeply for a config.json",
    "this is not JSON; a config.json of Hugging Face is needed",
    "this is JSON, but not an object; a config.json of Hugging Face is one",
    "{key} is a number beyond all measure",
    "Opened from a folder, this page shows one worked example: browsers start the calculator "
    "only from a server. “make serve” in the book's folder is one.",
    "The calculator did not start: this browser may be too old for it.",
)
