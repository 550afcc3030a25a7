"""Sentences about a pasted adapter_config.json: as in memlab.page.words, loaded when needed."""

ADAPTER_READ = (
    "Read from the adapter_config.json: {fields}. The chosen model stays; how its base model is "
    "stored, such a file does not tell."
)
ADAPTER_OF = (
    "Read from the adapter_config.json: {fields}. Its base_model_name_or_path is {model}, which is "
    "chosen now; how that base model is stored, such a file does not tell."
)
ADAPTER_FIELD = (
    "{field} in this adapter_config.json is not supported on this page; “{command}” computes it, "
    "or names what is not supported"
)
