"""The first page's small calculator as HTML: three questions, the hills of a step, three doors.

Its picture, before any script, is that of Part I's run. A script (book/calculator/wake.mjs) shows
the form and fills it where there is an engine to answer.
"""

from urllib.parse import urlencode

from calculator_answer import e, hills

from memlab.devices import devices
from memlab.page.controls import CHOICES, first

FIRST = first()
HOME = {"model": FIRST["model"], "tokens": 8192, "card": FIRST["card"]}
LABELS = {"model": "Model", "tokens": "Sequence length", "card": "GPU"}
VALUES = {name: values for name, _, values in CHOICES}
HOME_CHOICES = {
    "model": VALUES["model"],
    "tokens": [(n, f"{n:,}") for n in [2**power for power in range(9, 18)]],
    "card": [(card.name, card.name) for card in devices()],
}
ASK = "calculator.html"
DOORS = (
    (ASK, "Ask", "what your own model needs: any config.json, any GPU"),
    ("anatomy.html", "Read", "where every byte comes from, one term at a time"),
    ("audit.html", "Audit", "what five field notes claim, counted again"),
)


def step(found, say):
    """The block, with an answer to what HOME asks."""
    return f"""<form id="calc-form" autocomplete="off" hidden>
{"".join(control(name, say) for name in HOME)}</form>
<p id="calc-wrong" role="alert"></p>
<p id="calc-verdict" role="status" data-fits="{found["state"]}">{say(found["verdict"])}</p>
{hills(found, say)}
<p id="calc-scale">{say(found["scale"])}</p>
<p id="calc-title">{say(found["heading"])}</p>
<ul class="calc-doors">{"".join(door(*each, say) for each in DOORS)}</ul>"""


def control(name, say):
    """A list with the one value that the picture is of; the script puts the others into it."""
    value = HOME[name]
    return (
        f'<div class="calc-control"><label for="calc-{name}">{say(LABELS[name])}</label>'
        f'<select id="calc-{name}" name="{name}" disabled><option value="{e(value)}">'
        f"{say(dict(HOME_CHOICES[name])[value])}</option></select></div>\n"
    )


def door(page, name, words, say):
    """A way on; the calculator's asks there what was asked here."""
    said = {key: value for key, value in HOME.items() if value != FIRST[key]}
    address = f"{page}#{urlencode(said)}" if page == ASK else page
    asks = ' id="calc-ask"' if page == ASK else ""
    inside = f"<strong>{say(name)}</strong> <span>{say(words)}</span>"
    return f'<li><a href="{e(address)}"{asks}>{inside}</a></li>'
