"""The sentences of the page's calculator: one place from which they are made and translated.

What differs from state to state has a name in braces: a message (memlab.base.message) is the
pattern with its values, and the page of a language looks the pattern up. Long, because a translator
reads it as one.
"""

# The verdict, and what would help.
FITS = "✓ It fits {card}: it needs {total} of {limit}, and {left} are left."
FITS_SO_FAR = (
    "The peak of this step is not known here: {why}. What stays from step to step fits {card}: "
    "{total} of {limit}, and {left} are left for the step itself."
)
TOO_MUCH_AT_REST = (
    "✗ The peak of this step is not known here: {why}. What stays from step to step alone does not "
    "fit {card}: {total}, and {limit} are there. {left} too much."
)
TIGHT = (
    "≈ Tight on {card}: it needs {total} of {limit}, and may take up to {most} with what the "
    "allocator keeps for itself, {percent}% in {runs} posted runs. It may run out of memory."
)
TIGHT_RANKS = (
    "≈ Tight on {card}: it needs {total} of {limit}, and may take up to {most} with NCCL's buffers "
    "and what the allocator keeps for itself, {percent}% in {runs} posted runs. It may run out of "
    "memory."
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
OVER = "Or divide it over {cards} cards with FSDP2: each of them then needs {size}."
OVER_IN_BLOCKS = (
    "Or divide it over {cards} cards with FSDP2, and checkpoint every block: each of them then "
    "needs {size}."
)
INSTEAD = "Or train adapters alone, {kind} of rank 16 on every linear layer: it then needs {size}."
INSTEAD_IN_BLOCKS = (
    "Or train adapters alone, {kind} of rank 16 on every linear layer, and checkpoint every block: "
    "it then needs {size}."
)
IN_NF4 = "Or keep the base of these adapters in NF4 (QLoRA): it then needs {size}."
IN_NF4_IN_BLOCKS = (
    "Or keep the base of these adapters in NF4 (QLoRA), and checkpoint every block: it then needs "
    "{size}."
)
MICRO_BATCHES = "{passes} micro-batches"
LESS_PARALLEL = "less parallel work in each"

# Around the bar and the ledger.
HILLS = "The hills of the step: {hills}"
PICTURE = "A bar of {size}: {parts}. A line at {limit}."
SCALE = "The line: {limit}, what {card} gives a program beside a CUDA context and cuBLAS."
HEADING = "{model} · {recipe} · {tokens}: the peak, in {moment}"
HEADING_AT_REST = "{model} · {recipe}: what stays from step to step"
BATCHES_OF_PAIRS = "{passes} batches of {batch} × 2 × {tokens} tokens, in pairs"
PAIRS = "{batch} × 2 × {tokens} tokens, in pairs"
BATCHES = "{passes} batches of {batch} × {tokens} tokens"
BATCH = "{batch} × {tokens} tokens"
YOUR_CARD = "your card of {size}"
YOURS = "your {family}"
UNDIVIDED = (
    "ZeRO {stage} divides nothing here: it divides among devices that each have their own data, "
    "and there is one of them. These are the figures of a step without ZeRO."
)

# What an engine makes of the same card.
SERVED = (
    "Served by vLLM in bf16 instead, {card} has {size} left for conversations: room for {tokens} "
    "tokens, which is {count} conversations of {each} tokens at once."
)
NOT_SERVED = (
    "vLLM does not start in bf16 on {card}: {size} are left for conversations, and one of {each} "
    "tokens needs more."
)
NO_ENGINE = "What vLLM leaves for conversations is not described for this model and these tokens."

# Formulas.
OPTIMIZER_STATES = "{optimizer}, tensor by tensor: {size} B per parameter of a large matrix"
ROOTS = "{size}: the root of every second moment, AdamW's foreach loop"
SMALLER = "{size} in {count} smaller products"

# Left out of the total.
WITHOUT = (
    "the CUDA context and cuBLAS's workspaces, {size} of the card; scratch memory inside kernels; "
    "what the allocator keeps for itself, in three of four among {runs} posted runs at most "
    "{percent}% of the total: a step fits where that is free as well"
)
OF_NCCL = "NCCL's buffers, for which {size} are left free as well, the most that somebody has read"
ONLY_IN_A_STEP = "everything that lives only during a step: activations, logits, temporaries"
PAGED = "states that the driver moves between host and card: {size}, in managed memory"
LEFT_BY_FSDP = (
    "blocks that FSDP2's streams leave unused in the reserved memory: no GPU has measured this "
    "step here yet"
)
CACHE = "the KV cache, which a step does not have: {size} for the same tokens in bf16"
NO_CACHE = "the KV cache, which is not described for this model"
BUT_TEXT = "all parts of this {family} but the text"
CONFIG_READ = "everything of your config but {keys}"
CONFIG_NO_EFFECT = "keys of your config that change no byte here: {keys}"
CONFIG_UNKNOWN = "keys of your config that its family does not have: {keys}"

# Why there is no peak.
TRACE = "memlab trace CONFIG runs this model's own code"
NO_KIND = "this kind of step is not described"
DIVIDED = "activations are counted in chapter 26 where matrices or layers are divided, not here"
DIVIDED_ALONE = (
    "the step of ranks that divide matrices or layers is not counted on this page; the command "
    "below counts the peak of one of them, or says what of it is not described"
)
ZERO = (
    "the step under DeepSpeed's ZeRO {stage} is not counted on this page; the command below counts "
    "its peak, or says what of it is not described"
)
NO_FAMILY_STEP = "the steps of {family} are not counted on this page"
ROWS = "rows of the loss"
SMALL = "{what}={size}: a step needs {least} or more"
HEADS = "H={size}: heads of a multiple of 8, up to 256 wide, are counted"
DIFFERS = "this model differs from what the {family} family does"
SQUARE = "heads of D / N, and as many keys as queries, are counted for {family}"
KEY = "{key}={value} is not described on this page"
FORM = "these keys of a {family} config are not described together on this page"
LAYERS = "layers of {family} in this order are not described on this page"
CHUNKED = "{family} changes its logits after the output head, where a loss in chunks ends"
EAGER = "{family} is described with eager attention alone"
AS_MANY = "as many key/value heads as query heads are not counted for {family}"
SLIDING = "layers with a sliding window are not described on this page"
ROPE = "{key} {value} is not described on this page"
WINDOW = "{tokens} tokens reach the sliding window of {window}"

# Adapters.
NO_ADAPTER_STEP = (
    "steps of {family} with adapters are not counted on this page; the command below counts them"
)
NO_LORA_DROPOUT = (
    "adapters with dropout are in no table of this page; the command below counts them"
)
NO_TABLE_OF_THESE = (
    "adapters beside these layers are in no table of this page; the command below counts them"
)
NO_ADAPTERS = "adapters beside a {family} are not described here"
ADAPTERS_ALONE = (
    "adapters are counted here on one device, under DDP and, beside a base that is not in NF4, "
    "under FSDP2"
)
NO_COPY = "adapters beside an fp32 copy of the weights are not described"
OTHERS = "{defaults}; the controls change them."
NO_BASE = "a base in NF4 is not described for {family}"
NF4_LEAVES_OUT = (
    "scales of the scales (bnb_4bit_use_double_quant), and the kernel without a copy that "
    "bitsandbytes takes on some cards for up to 1,536 rows"
)

# Loops.
NO_LOOP_STEP = (
    "steps of {family} in this loop are not counted on this page; the command below counts them"
)
NO_TEACHER = "steps beside a teacher are in no table of this page; the command below counts them"
TEACHER_ALONE = "a step beside a teacher is counted on one device here"
OTHER_WORDS = (
    "the teacher {teacher} has a vocabulary of {theirs} tokens and {model} one of {own}: their "
    "predictions are compared token by token, so they need the same"
)
NO_LOOP_COPY = "an fp32 copy of the weights is not counted beside this loop"
NO_LOOP_ADAPTERS = "adapters in this loop are not counted on this page; the command below does"
NO_LOOP_PRECISION = "adapters in this loop are counted in bf16 and under autocast here, not in fp32"
NO_LOOP_EAGER = "this loop is counted with SDPA attention here; the command below counts the other"
NO_LOOP_LOSS = "a loss in chunks is counted in a loop of your own alone: choose all logits at once"
NO_TORCH_LOSS = (
    "torch's loss in chunks multiplies input and head in one format, and autocast gives them two"
)
NO_LOOP_DEVICES = "this loop is counted on one device here, or on several that each have all (DDP)"

# FSDP2.
NO_FSDP_STEP = (
    "steps of {family} under FSDP2 are not counted on this page; the command below counts them"
)
NO_FSDP_COPY = "an fp32 copy of the weights is not described under FSDP2"
NO_FSDP_OPTIMIZER = "{optimizer} is not described under FSDP2, which divides tensors by rows"
NO_FSDP_LOSS = "under FSDP2 a loss of all logits at once is counted, in a loop of your own"
NO_FSDP_POLICY = (
    "the step of FSDP2 in another format than that of the weights is in no table of this page; "
    "the command below counts its peak, or says what of it is not described"
)
NO_FSDP_EAGER = "under FSDP2 SDPA attention is counted here; the command below counts the other"

NO_FSDP_ADAPTERS = (
    "the step of adapters under FSDP2 is in no table of this page; the command below counts its "
    "peak, or says what of it is not described"
)

# What cannot be.
NO_LIST = "the state is not a list of names and values"
NO_SETTING = "{name} is no setting of this page"
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
TOO_DEEP = "{layers} layers: this page counts up to {most}"
NO_TABLE = (
    "the page has no table of the tensors of a {family}; where transformers is installed, "
    "memlab estimate CONFIG answers"
)
NEEDS_KEY = "the page needs {key}, which this config leaves out"
LEAST_KEY = "{key}={value} is no whole number from {least} on"
NO_PARTS = "the page needs {whole} to be a multiple of {parts}"
NO_LAYERS = "the page needs {key} to be a list of {layers} layers"
NO_ORDER = "the layers of this config are in an order that is not described on this page"
ONE_DEVICE = "a {family} is counted on one device here"
NOT_BESIDE = (
    "{field}: what stays of a {family} is counted without it; the command line has the families "
    "that are described with it (memlab models)"
)
NO_MUON = "{optimizer} treats hidden matrices apart; which those of a {family} are is not described"
