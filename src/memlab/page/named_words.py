"""What the page says of a model that is named: by a preset's name, a size, or a hub's address."""

FIND = "Find a model: a name, a size such as 7B, or owner/name of the Hugging Face Hub"
MATCHES = "{count} of {all} models"
LISTED = "{model} · {size}B"
TAKEN = "{model}: chosen"
NO_MODEL = (
    "“{name}” is no model of this list; its config.json can be pasted below, and owner/name or an "
    "address of the Hugging Face Hub is looked up in what this page knows"
)
NO_HUB = (
    "{name} is no model of this list, and this page reads no hub: open its config.json at the "
    "address beside, and paste it below"
)
NO_FORMAT = "{told}; its format is not among those of this page, and its weights are not counted"
