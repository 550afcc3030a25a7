"""The sizes that classes of transformers take where a config says none, for memlab.page.text_sizes.

    python tools/text_sizes.py --write  into src/memlab/page/text_sizes.py

The text_config of a whole says of its text what differs from the class. Asked is each class of a
described family, for the keys without which a config of its own is refused.
"""

import argparse
import textwrap
from pathlib import Path
from typing import Any

from memlab.families import REQUIRED, config_types, has_config, record_of
from memlab.page import text_sizes

OUT = Path(text_sizes.__file__)


def sizes() -> dict[str, str]:
    """{family: "key=size ..."} of the keys that memlab asks for, in the order of its record."""
    import transformers

    made = {}
    for family in config_types():
        usual = transformers.CONFIG_MAPPING[family]()
        keys = [key for key, default in record_of(family).shape.values() if default is REQUIRED]
        told = {key: getattr(usual, key, None) for key in keys}
        made[family] = " ".join(f"{k}={v}" for k, v in sorted(told.items()) if type(v) is int)
    return made


def of_wholes() -> dict[str, str]:
    """{a whole: "key=size ..."} of those whose class takes others than the class of its text."""
    import transformers
    from transformers.models.auto import modeling_auto as auto

    names = {*auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES}
    names |= {*auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES}
    made = {}
    for whole in sorted(names):
        usual: Any = transformers.CONFIG_MAPPING[whole]()
        family = getattr(getattr(usual, "text_config", None), "model_type", "")
        if not has_config(family):
            continue
        try:
            own = type(usual)(text_config={"model_type": family}).text_config
        except Exception:  # one that holds its text against its other parts, which are said then
            continue
        plain = transformers.CONFIG_MAPPING[family]()
        told = {key: getattr(own, key, None) for key, _ in record_of(family).shape.values()}
        width = told.get("head_dim") or 0  # of its own, where it is not D / N
        apart = width and width * own.num_attention_heads != own.hidden_size
        differ = {k for k, v in told.items() if type(v) is int and v != getattr(plain, k, None)}
        differ |= {"head_dim"} if differ and apart else set()
        told = {k: told[k] for k in differ}
        if told:
            made[whole] = " ".join(f"{k}={v}" for k, v in sorted(told.items()))
    return made


def written(found: dict[str, str], wholes: dict[str, str]) -> str:
    """The module with its tables anew."""
    head, _, _ = OUT.read_text(encoding="utf-8").partition("SIZES: ")
    return f"{head}{_table('SIZES', found)}{_table('OF_WHOLES', wholes)}"


def _table(name: str, found: dict[str, str]) -> str:
    rows = []
    for family, words in found.items():
        line = f'    "{family}": "{words}",'
        if len(line) > 100:
            lines = textwrap.wrap(words, 85)
            lines = [f'        "{line} "' for line in lines[:-1]] + [f'        "{lines[-1]}"']
            rows += [f'    "{family}": (', *lines, "    ),"]
        else:
            rows.append(line)
    return f"{name}: dict[str, str] = {{\n" + "\n".join(rows) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"into {OUT.name}")
    options = parser.parse_args()
    text = written(sizes(), of_wholes())
    if options.write:
        OUT.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
