"""The book's text face, Source Sans 3, from the site itself: subset files that `npm ci` brings.

Its licence, the SIL Open Font License 1.1, goes with it. The files are not part of this repository:
without them a page is set in the system's own face, as Chinese is on every page.
"""

import hashlib
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "node_modules" / "@fontsource" / "source-sans-3"
FAMILY = "Source Sans 3"
STANDS_IN = "Source Sans 3 until it has come"  # a face of the system
# What the book sets: text, stress, and headings with all that is bold.
FACES = (("400", "normal", "400"), ("400", "italic", "400"), ("600", "normal", "600 700"))
NAME = "source-sans-3-latin-{weight}-{style}.woff2"
PLACE = "_static/fonts"
LICENCE = "OFL.txt"
LATIN = (
    "U+0000-00FF, U+0131, U+0152-0153, U+02BB-02BC, U+02C6, U+02DA, U+02DC, U+0304, U+0308, "
    "U+0329, U+2000-206F, U+20AC, U+2122, U+2191, U+2193, U+2212, U+2215, U+FEFF, U+FFFD"
)
# Its letters are small for their size, next to the faces that systems carry.
FACE = """
@font-face {{
  font-family: "{family}";
  font-style: {style};
  font-weight: {range};
  font-display: swap;
  size-adjust: 108%;
  src: url("fonts/{file}") format("woff2");
  unicode-range: {latin};
}}"""

# What stands there until it has come: a face of every system, set so that lines keep their length
# and height. The mean width of a letter of Source Sans 3, at its 108 %, over that of Arial (whose
# widths Liberation Sans has), in the text of three pages of this book; ascent and descent are those
# of Source Sans 3, 1.024 and 0.4 of its size.
SYSTEM = {
    ("400", "normal"): (101.1, ("Arial", "ArialMT", "Liberation Sans", "LiberationSans", "Roboto")),
    ("400", "italic"): (
        98.5,
        ("Arial Italic", "Arial-ItalicMT", "Liberation Sans Italic", "LiberationSans-Italic"),
    ),
    ("600", "normal"): (
        97.2,
        ("Arial Bold", "Arial-BoldMT", "Liberation Sans Bold", "LiberationSans-Bold"),
    ),
}
UNTIL_THEN = """
@font-face {{
  font-family: "{family}";
  font-style: {style};
  font-weight: {range};
  src: {local};
  size-adjust: {size}%;
  ascent-override: {ascent:.1f}%;
  descent-override: {descent:.1f}%;
  line-gap-override: 0%;
}}"""


def until_then(weight, style, weights):
    """The rule of the system's face that stands in for one of the book's."""
    size, names = SYSTEM[weight, style]
    local = ", ".join(f'local("{name}")' for name in names)
    given = {"family": STANDS_IN, "style": style, "range": weights, "local": local, "size": size}
    return UNTIL_THEN.format(ascent=102.4 * 108 / size, descent=40 * 108 / size, **given)


def faces():
    """(file, style, range of weights) of every face that is there; of a part, none."""
    found = [
        (PACKAGE / "files" / NAME.format(weight=weight, style=style), style, weights)
        for weight, style, weights in FACES
    ]
    return found if all(file.exists() for file, *_ in found) else []


def key():
    """A hash over the files: a book built without them is built again once they are there."""
    made = hashlib.sha256()
    for file, *_ in faces():
        made.update(file.read_bytes())
    return made.hexdigest()


def stage(source):
    """Put the files beside the staged style sheet, and their names into it."""
    sheet = source / "_static" / "memlab.css"
    if not faces() or not sheet.exists():
        return
    target = source / PLACE
    target.mkdir(parents=True)
    shutil.copy(PACKAGE / "LICENSE", target / LICENCE)
    rules = "/* Source Sans 3, under the SIL Open Font License 1.1: fonts/OFL.txt. */"
    for file, style, weights in faces():
        shutil.copy(file, target)
        given = {"family": FAMILY, "style": style, "range": weights, "file": file.name}
        rules += FACE.format(latin=LATIN, **given)
    rules += "".join(until_then(*each) for each in FACES)
    sheet.write_text(f"{rules}\n{sheet.read_text(encoding='utf-8')}", encoding="utf-8")
