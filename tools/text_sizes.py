"""The sizes that classes of transformers take where a config says none, for memlab.page.text_sizes.

    python tools/text_sizes.py --write  into src/memlab/page/text_sizes.py

The text_config of a whole says of its text what differs from the class. Asked is each class of a
described family, for the keys without which a config of its own is refused.
"""

import argparse
import textwrap
from pathlib import Path

from memlab.families import REQUIRED, config_types, record_of
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


def written(found: dict[str, str]) -> str:
    """The module with its table anew."""
    head, mark, _ = OUT.read_text(encoding="utf-8").partition("SIZES: ")
    rows = []
    for family, words in found.items():
        line = f'    "{family}": "{words}",'
        if len(line) > 100:
            lines = textwrap.wrap(words, 85)
            lines = [f'        "{line} "' for line in lines[:-1]] + [f'        "{lines[-1]}"']
            rows += [f'    "{family}": (', *lines, "    ),"]
        else:
            rows.append(line)
    return f"{head}{mark}dict[str, str] = {{\n" + "\n".join(rows) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"into {OUT.name}")
    options = parser.parse_args()
    text = written(sizes())
    if options.write:
        OUT.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
