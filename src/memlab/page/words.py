"""The sentences of the page's calculator: one place from which they are made and translated.

What differs from state to state has a name in braces: a message (memlab.base.message) is the
pattern with its values, and the page of a language looks the pattern up. Long, because a translator
reads it as one.
"""

# The verdict, and what would help.
FITS = "✓ It fits {card}: it needs {total} of {limit}, and {left} are left."
FITS_SO_FAR = (
    "The peak of this step is not known here: {why}. What stays in memory between steps fits "
    "{card}: {total} of {limit}, and {left} are left for the step itself."
)
TOO_MUCH_AT_REST = (
    "✗ The peak of this step is not known here: {why}. What stays in memory between steps alone "
    "does not fit {card}: {total}, and {limit} are there. {left} too much."
)
TIGHT = (
    "≈ Tight on {card}: it needs {total} of {limit}, and may take up to {most} with what the "
    "allocator reserves on top, {percent}% in {runs} published runs. It may run out of memory."
)
TIGHT_RANKS = (
    "≈ Tight on {card}: it needs {total} of {limit}, and may take up to {most} with NCCL's buffers "
    "and what the allocator reserves on top, {percent}% in {runs} published runs. It may run out "
    "of memory."
)
TOO_MUCH = "✗ It does not fit {card}: it needs {total}, and {limit} are there. {left} too much."
CHEAPEST = "The cheapest changes that make it fit:"
CHEAPEST_TIGHT = "No change makes it fit for sure; with these it is tight:"
NO_CHANGE = "No change helps: {never}."
NEVER = (
    "with every change that this page knows it still needs {size}, as long as the same weights are "
    "trained"
)
CHANGED = "{change}: {cost}; then {size}"
OVER = "Or shard it over {cards} GPUs with FSDP2: each of them then needs {size}."
OVER_IN_BLOCKS = (
    "Or shard it over {cards} GPUs with FSDP2, with gradient checkpointing: each of them then "
    "needs {size}."
)
INSTEAD = "Or train adapters only, {kind} of rank 16 on every linear layer: it then needs {size}."
INSTEAD_IN_BLOCKS = (
    "Or train adapters only, {kind} of rank 16 on every linear layer, with gradient checkpointing: "
    "it then needs {size}."
)
IN_NF4 = "Or quantize the base model of these adapters to NF4 (QLoRA): it then needs {size}."
IN_NF4_IN_BLOCKS = (
    "Or quantize the base model of these adapters to NF4 (QLoRA), with gradient checkpointing: it "
    "then needs {size}."
)
MICRO_BATCHES = "{passes} gradient accumulation steps"
LESS_PARALLEL = "less parallel work in each"

# Around the bar and the ledger.
HILLS = "Peaks of the phases: {hills}"
PICTURE = "A bar of {size}: {parts}. A line at {limit}."
SCALE = "The dashed line is at {limit}: the memory of {card} less a CUDA context and cuBLAS."
HEADING = "{model} · {recipe} · {tokens}: the peak, in {moment}"
HEADING_AT_REST = "{model} · {recipe}: what stays in memory between steps"
BATCHES_OF_PAIRS = "{passes} batches of {batch} × 2 × {tokens} tokens, in pairs"
PAIRS = "{batch} × 2 × {tokens} tokens, in pairs"
BATCHES = "{passes} batches of {batch} × {tokens} tokens"
BATCH = "{batch} × {tokens} tokens"
YOUR_CARD = "your GPU of {size}"
YOURS = "your {family}"
UNDIVIDED = (
    "ZeRO {stage} shards nothing here: it shards over data-parallel GPUs, and there is one of "
    "them. These are the figures of a step without ZeRO."
)

# What an engine makes of the same GPU.
SERVED = (
    "For inference with vLLM in bf16, {card} has {size} left for the KV cache: {tokens} tokens, "
    "which is {count} concurrent conversations of {each} tokens."
)
NOT_SERVED = (
    "vLLM does not start in bf16 on {card}: {size} are left for the KV cache, and one conversation "
    "of {each} tokens needs more."
)
NO_ENGINE = "What vLLM leaves for the KV cache is not supported for this model and length."

# What a control's default is.
OWN_OF = "default of {program}: {value}"
OWN_VALUE = "default: {value}"

# Formulas.
OPTIMIZER_STATES = "{optimizer}, tensor by tensor: {size} B per parameter of a large matrix"
ROOTS = "{size}: the root of every second moment, foreach AdamW"
SMALLER = "{size} in {count} smaller products"

# Left out of the total.
WITHOUT = (
    "the CUDA context and cuBLAS's workspaces, {size} of the GPU; temporaries inside kernels; "
    "what the allocator reserves on top, in three of four among {runs} published runs at most "
    "{percent}% of the total: a step fits where that is free as well"
)
OF_NCCL = "NCCL's buffers, for which {size} are left free as well, the largest published figure"
ONLY_IN_A_STEP = "everything that lives only during a step: activations, logits, temporaries"
PAGED = "states that the driver moves between host and GPU: {size}, in managed memory"
LEFT_BY_FSDP = (
    "blocks that FSDP2's streams leave unused in the reserved memory: this step has not been "
    "measured on a GPU here yet"
)
CACHE = "the KV cache, which a training step does not have: {size} for the same tokens in bf16"
NO_CACHE = "the KV cache, which is not supported for this model"
BUT_TEXT = "all parts of this {family} but the text"
CONFIG_READ = "everything of your config but {keys}"
CONFIG_NO_EFFECT = "keys of your config that have no effect on memory here: {keys}"
CONFIG_UNKNOWN = "keys of your config that are not known for its family: {keys}"

# Why there is no peak.
TRACE = "memlab trace CONFIG runs this model's own code"
NO_KIND = "this kind of step is not supported"
DIVIDED = "activations under tensor or pipeline parallelism are in chapter 26, not here"
DIVIDED_ALONE = (
    "steps under tensor or pipeline parallelism are not in the tables of this page; the command "
    "below computes the peak of one rank, or names what is not supported"
)
ZERO = (
    "steps under DeepSpeed's ZeRO {stage} are not in the tables of this page; the command below "
    "computes the peak, or names what is not supported"
)
NO_FAMILY_STEP = "steps of {family} are not supported on this page"
ROWS = "rows of the loss"
SMALL = "{what}={size}: a step needs {least} or more"
HEADS = "H={size}: a head dimension that is a multiple of 8, up to 256, is supported"
DIFFERS = "this model differs from what the {family} family does"
SQUARE = (
    "a head dimension of D / N and as many key/value heads as query heads are supported for "
    "{family}"
)
KEY = "{key}={value} is not supported on this page"
FORM = "this combination of keys of a {family} config is not supported on this page"
LAYERS = "layers of {family} in this order are not supported on this page"
CHUNKED = "{family} changes its logits after the output head, which a chunked loss cannot do"
EAGER = "{family} is supported with eager attention only"
AS_MANY = "as many key/value heads as query heads are not supported for {family}"
SLIDING = "layers with a sliding window are not supported on this page"
ROPE = "{key} {value} is not supported on this page"
WINDOW = "{tokens} tokens reach the sliding window of {window}"

# Adapters.
NO_ADAPTER_STEP = (
    "steps of {family} with adapters are not in the tables of this page; the command below "
    "computes them"
)
NO_LORA_DROPOUT = (
    "adapters with dropout are not in the tables of this page; the command below computes them"
)
NO_TABLE_OF_THESE = (
    "these target modules are not in the tables of this page; the command below computes them"
)
NO_ADAPTERS = "adapters on a {family} are not supported here"
ADAPTERS_ALONE = (
    "adapters are supported here on one GPU, under DDP and, unless their base model is in NF4, "
    "under FSDP2"
)
NO_COPY = "adapters with an fp32 master copy of the weights are not supported"
OTHERS = "{defaults}; the form changes them."
NO_BASE = "a base model in NF4 is not supported for {family}"
NF4_LEAVES_OUT = (
    "double quantization (bnb_4bit_use_double_quant), and the kernel without a copy that "
    "bitsandbytes takes on some GPUs for up to 1,536 rows"
)

# Training frameworks.
NO_LOOP_STEP = (
    "steps of {family} in this training framework are not in the tables of this page; the command "
    "below computes them"
)
NO_TEACHER = (
    "steps with this teacher are not in the tables of this page; the command below computes them"
)
TEACHER_ALONE = "a step with a teacher model is supported on one GPU here"
OTHER_WORDS = (
    "the teacher {teacher} has a vocabulary of {theirs} tokens and {model} one of {own}: their "
    "predictions are compared token by token, so the sizes must be equal"
)
NO_LOOP_COPY = "an fp32 master copy of the weights is not supported in this training framework"
NO_LOOP_ADAPTERS = (
    "adapters in this training framework are not in the tables of this page; the command below "
    "computes them"
)
NO_LOOP_PRECISION = (
    "adapters in this training framework are supported in bf16 and under autocast here, not in fp32"
)
NO_LOOP_EAGER = (
    "this training framework is supported with SDPA attention here; the command below computes "
    "eager attention"
)
NO_LOOP_LOSS = (
    "a chunked loss is supported in plain PyTorch only; for this training framework choose all "
    "logits at once"
)
NO_TORCH_LOSS = (
    "torch's chunked loss multiplies input and head in one dtype, and autocast gives them two"
)
NO_LOOP_DEVICES = "this training framework is supported on one GPU here, or on several under DDP"

# FSDP2.
NO_FSDP_STEP = (
    "steps of {family} under FSDP2 are not in the tables of this page; the command below computes "
    "them"
)
NO_FSDP_COPY = "an fp32 master copy of the weights is not supported under FSDP2"
NO_FSDP_OPTIMIZER = "{optimizer} is not supported under FSDP2, which shards tensors by rows"
NO_FSDP_LOSS = "under FSDP2 a loss of all logits at once is supported, in plain PyTorch"
NO_FSDP_POLICY = (
    "FSDP2 with another compute dtype than that of the weights is not in the tables of this page; "
    "the command below computes its peak, or names what is not supported"
)
NO_FSDP_EAGER = (
    "under FSDP2 SDPA attention is supported here; the command below computes eager attention"
)
NO_FSDP_ADAPTERS = (
    "these adapters under FSDP2 are not in the tables of this page; the command below computes the "
    "peak, or names what is not supported"
)

# What cannot be.
NO_LIST = "the state is not a list of names and values"
NO_SETTING = "{name} is not an option of this page"
NO_CHOICE = "{label}: {value} is not one of the choices"
NO_NUMBER_YET = "{label}: a whole number from {least} to {most} is needed"
NO_NUMBER = "{label}: {value} is no whole number from {least} to {most}"
POSITIONS = "{tokens} tokens: {model} has {positions} positions"
NO_CONFIG = "the config is not a JSON object; a config.json of Hugging Face is one"
NO_FAMILY = "the config has no 'model_type' that is text"
NO_OBJECT = "{key}={value} is not a JSON object"
NO_SIZE = "{key}={value} is no size of a model: at most {most}"
BEYOND = "{key}={value}: a number beyond all measure"
NO_VALUE = "{key}={value} is no number, text, true or false"
TOO_DEEP = "{layers} layers: this page supports up to {most}"
NO_TABLE = (
    "the page has no table of the tensors of a {family}; where transformers is installed, "
    "memlab estimate CONFIG answers"
)
NEEDS_KEY = "the page needs {key}, which this config leaves out"
LEAST_KEY = "{key}={value} is no whole number from {least} on"
NO_PARTS = "the page needs {whole} to be a multiple of {parts}"
NO_LAYERS = "the page needs {key} to be a list of {layers} layers"
NO_ORDER = "the layers of this config are in an order that is not supported on this page"
ONE_DEVICE = "a {family} is supported on one GPU here"
NOT_BESIDE = (
    "{field} is not supported for a {family} here; “memlab models” lists the families that the "
    "command line supports it for"
)
NO_MUON = (
    "{optimizer} is not supported for a {family}: which of its matrices are hidden is not known"
)
