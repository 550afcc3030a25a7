"""Sentences about a pasted adapter_config.json: as in memlab.page.words, loaded when needed."""

ADAPTER_READ = (
    "Read from the adapter_config.json: {fields}. The model stays as it was chosen; how its base "
    "is stored, no such file says."
)
ADAPTER_OF = (
    "Read from the adapter_config.json: {fields}. Its base_model_name_or_path names {model}, which "
    "is chosen now; how that base is stored, no such file says."
)
ADAPTER_FIELD = (
    "what {field} says in this adapter_config.json is not counted on this page; “{command}” counts "
    "it, or says what of it is not described"
)
