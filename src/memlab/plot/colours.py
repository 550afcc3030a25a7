"""One colour a term, throughout the book, and the ink that can be read on it."""

# Okabe and Ito 2008, Color Universal Design: eight colours that stay apart for every kind of colour
# vision. Terms that are copies of another take a darker or lighter shade of its colour, and
# so do the parts of a network, which are parts of the weights.
# The order is the one in which terms are stacked, everywhere.
COLOURS = {
    "weights": "#0072B2",
    "embedding": "#A6D1EA",
    "attention": "#0072B2",
    "feed_forward": "#00507D",
    "norm": "#D9ECF7",
    "lm_head": "#7DBBE0",
    "master": "#004C7A",
    "written out": "#3F97CC",
    "reference": "#8CC1E6",
    "gradients": "#56B4E9",
    "accumulator": "#A9D9F5",
    "optimizer": "#009E73",
    "activations": "#E69F00",
    "logits": "#D55E00",
    "KV cache": "#CC79A7",
    "allocator": "#999999",
    "buffers": "#BBBBBB",
    "inputs": "#D5D5D5",
    "other": "#999999",
}
# What other modules call the same things.
ALIASES = {"parameters": "weights", "kv_cache": "KV cache", "saved": "activations"}
ALIASES |= {"keys and values": "KV cache", "queries": "activations", "feed-forward": "feed_forward"}
INK, PAPER, GREY = "#1A1A1A", "#FFFFFF", "#595959"


def colour_of(term: str) -> str:
    """The colour of a term; grey, the colour of `other`, for one that has none of its own."""
    name = ALIASES.get(term, term)
    return COLOURS.get(name, COLOURS["other"])


def in_order(terms: list[str]) -> list[str]:
    """The terms, each once, as they are stacked: those with a colour first, then the others."""
    known = list(COLOURS)

    def place(term: str) -> int:
        name = ALIASES.get(term, term)
        return known.index(name) if name in known else len(known)

    return sorted(dict.fromkeys(terms), key=place)


def ink_on(colour: str) -> str:
    """Black or white, whichever contrasts more with the colour (at least 4.5 : 1)."""
    return max((INK, PAPER), key=lambda ink: contrast(ink, colour))


def contrast(a: str, b: str) -> float:
    """Contrast of two colours, from 1 to 21.

    Formula     (lighter + 0.05) / (darker + 0.05), of relative luminances
    Source      WCAG 2.2, "contrast ratio"
    """
    dark, light = sorted((_luminance(a), _luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
