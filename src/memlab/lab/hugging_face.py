"""transformers without its warnings, and a tokenizer of few words that needs no hub."""

from typing import Any

from .quiet import quiet


def hugging_face() -> Any:
    """transformers, imported without its warnings."""
    with quiet():
        import transformers

        _ = transformers.Trainer  # loaded when it is asked for, with warnings of its own
    transformers.logging.set_verbosity_error()
    return transformers


def tokenizer() -> Any:
    """Of few words: next to nothing is tokenized, but the trainers want one."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"<pad>": 0, "<end>": 1, "a": 2}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    told = {"pad_token": "<pad>", "eos_token": "<end>"}
    return hugging_face().PreTrainedTokenizerFast(tokenizer_object=words, **told)
