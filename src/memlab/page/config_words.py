"""What the page says of a config that was pasted: of a whole its text, of a type what it is.

As in memlab.page.words, what differs has a name in braces.
"""

# The verdict on the text of a model that also reads images or audio.
FITS_TEXT = "✓ Its text, {without}, fits {card}: it needs {total} of {limit}, and {left} are left."
FITS_SO_FAR_TEXT = (
    "The peak of this step is not known here: {why}. What its text, {without}, keeps in memory "
    "between steps fits {card}: {total} of {limit}, and {left} are left for the step itself."
)
TOO_MUCH_AT_REST_TEXT = (
    "✗ The peak of this step is not known here: {why}. What its text, {without}, keeps in "
    "memory between steps alone does not fit {card}: {total}, and {limit} are there. {left} too "
    "much."
)
TIGHT_TEXT = (
    "≈ Its text, {without}, is tight on {card}: it needs {total} of {limit}, and may take up to "
    "{most} with what the allocator reserves on top, {percent}% in {runs} published runs. It may "
    "run out of memory."
)
TIGHT_RANKS_TEXT = (
    "≈ Its text, {without}, is tight on {card}: it needs {total} of {limit}, and may take up to "
    "{most} with NCCL's buffers and what the allocator reserves on top, {percent}% in {runs} "
    "published runs. It may run out of memory."
)
TOO_MUCH_TEXT = (
    "✗ Its text, {without}, does not fit {card}: it needs {total}, and {limit} are there. {left} "
    "too much."
)
NO_VISION = "without its vision tower"
NO_AUDIO = "without its audio encoder"
NO_VISION_NOR_AUDIO = "without its vision tower and its audio encoder"
NO_OTHER_PARTS = "without its other parts"
ENGINE_OF_WHOLE = (
    "{engine} loads every part of a {family}, and this page has its text alone, {without}: choose "
    "transformers in place of an engine"
)
TRACE_TEXT = "memlab trace CONFIG runs its text's own code where transformers is installed"

# What is not answered, and what answers instead.
OF_ITS_TEXT = (
    "text_config: {problem}; where transformers is installed, memlab estimate CONFIG answers"
)
NOT_IN_TABLE = (
    "{family} with {key}={value} is not supported on this page; where transformers is installed, "
    "memlab estimate CONFIG answers"
)
QUANTIZED = (
    "quantization_config={value}: the page's table of {family} is for weights that are not "
    "quantized; take the config of the model that was quantized"
)
NOT_BUILT = (
    "transformers builds no model of a {family} that reads text alone. Run your training script, "
    "memlab rehearse -- python train.py, or trace a step that you write, memlab trace "
    "FILE.py:FUNCTION"
)
UNKNOWN_TYPE = (
    "model_type {family} is not a type of transformers that this page knows, and its config has no "
    "text_config of a supported type. Run your training script, memlab rehearse -- python "
    "train.py, or trace a step that you write, memlab trace FILE.py:FUNCTION"
)
