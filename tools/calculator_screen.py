"""What a reader meets first on the calculator's page, as HTML: the verdict, the first change that
would help, the bar and its terms with their sizes; and what stands there where no script runs.

book/calculator/screen.mjs writes change and terms again with each answer.
"""

import re
from functools import lru_cache

import cpython
import peaks_seal
from calculator_answer import bar, change_inside, count, e, swatch

from memlab.base.message import Message
from memlab.model import Model
from memlab.model.presets import PRESETS
from memlab.page.answer import answered
from memlab.page.peak_files import reader
from memlab.recipe import Recipe
from memlab.recipe.resident import resident
from memlab.units import text

LEAD = "Choose below: the answer follows at once, and nothing you enter leaves this page."
LOOKING = "Looking for the cheapest change that makes it fit …"
TABLE = "calc-presets"  # where the links of both pages lead
# In brackets what leads to the pages that are linked, in their order.
FORMULAS = "The formulas, to work out the rest on paper: [the cheat sheet], [the notation]."
LINKED = ("cheat-sheet", "notation")
HEADS = ("Model", "Parameters", "Weights in bf16", "Recipe of the step", "Peak of the step")


def lead(note, engine, say):
    """One line above the verdict; until the calculator has started, its note stands there."""
    waits = ' class="pst-js-only"' if engine else ""  # without a script it would wait for ever
    kind = "yes" if engine else "no"
    return f"""<div class="calc-lead"><p id="calc-note" data-engine="{kind}"{waits}>{say(note)}</p>
<p>{say(LEAD)}</p></div>"""


def top(found, say):
    """The first screen: verdict and bar, which stay in sight while the form is used, and what would
    help first.
    """
    return f"""<section class="calc-top" aria-label="{say("Does it fit?")}">
<p id="calc-wrong" role="alert"></p>
<p id="calc-verdict" role="status" tabindex="-1" data-fits="{found["state"]}">\
{say(found["verdict"])}</p>
{remedy(found, say)}
{count(say) if cpython.there() else ""}
<svg id="calc-bar" role="img" aria-label="{say(found["picture"])}" viewBox="0 0 1000 60" \
preserveAspectRatio="none">{bar(found)}</svg>
{parts(found, say)}
<p id="calc-scale">{say(found["scale"])}</p>
{ways(say)}
</section>"""


def remedy(found, say):
    """The first change that would help, with its button; that none does; nothing where it fits."""
    inside = ""
    if found["steps"]:
        inside = change_inside(found["steps"][0], "", say)
    elif found["over"]:
        inside = change_inside(found["over"][0][0], "", say)
    elif found["advice"]:
        inside = f"<span>{say(found['advice'])}</span>"
    return f'<div id="calc-remedy" data-looking="{say(LOOKING)}">{inside}</div>'


def parts(found, say):
    """The bar's terms in its order, each with its size."""
    items = "".join(
        f"<li>{swatch(row['term'])}{say(row['term'])} <b>{say(row['text'])}</b></li>"
        for row in found["rows"]
    )
    label = say("The parts of the bar")
    return f'<ul id="calc-parts" class="calc-plain" aria-label="{label}">{items}</ul>'


def ways(say):
    """On to what stands below the form."""
    return f"""<p class="calc-ways">\
<a href="#calc-result">{say("The whole breakdown, term by term")}</a> \
<a href="#calc-advice">{say("All changes that would help")}</a></p>"""


def unscripted(say):
    """What to do without scripts, above the answer to one question."""
    without = "This calculator needs JavaScript. Without it, here is its answer to one question."
    return f"""<noscript><p>{say(without)} \
<a href="#{TABLE}">{say("All models of its list, in one table")}</a></p></noscript>"""


def presets(say, models=None):
    """Models in a table for readers without scripts, and where the formulas stand.

    models      as `sizes` has them; None for every model of the list
    """
    heads = "".join(f'<th scope="col">{say(name)}</th>' for name in HEADS)
    rows = "".join(
        f'<tr><th scope="row">{e(name)}</th>'
        + "".join(f"<td>{say(words)}</td>" for words in told)
        + "</tr>"
        for name, *told in (sizes() if models is None else models)
    )
    what = Message(
        "What each model of the list needs: its weights, and at its peak a training step of "
        "{tokens} on one GPU, where the book has a table of that step.",
        tokens=tokens(),
    )
    formulas = say(FORMULAS)
    for page in LINKED:
        formulas = re.sub(r"\[(.+?)\]", rf'<a href="{page}.html">\1</a>', formulas, count=1)
    return f"""<noscript><div class="pst-scrollable-table-container" tabindex="0">
<table id="{TABLE}" class="memlab-ledger"><caption>{say(what)}</caption>
<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>
<p>{formulas}</p></noscript>"""


@lru_cache(1)
def _start():
    return answered({}, reader(peaks_seal.kept()), advise=False)


def tokens():
    """What the step reads that the page asks about at first."""
    return _start()["heading"].values["tokens"]


@lru_cache(1)
def sizes():
    """Name, parameters, bytes of the weights in bf16, recipe and peak of the step, each as text.

    The step is that of the question that the page starts with; "–" where no table has its peak, or
    the model has too few positions for it.
    """
    lookup, made = reader(peaks_seal.kept()), []
    for name in sorted(PRESETS):
        model = Model.preset(name)
        weights = resident(model, Recipe.named("bf16"))["weights"]
        try:
            found = answered({"model": name}, lookup, advise=False)
        except ValueError:
            found = {"peak": False}
        step = ("–", "–")
        if found["peak"]:
            step = (found["heading"].values["recipe"], found["total_text"])
        made.append((name, f"{model.parameter_count:,}", text(weights), *step))
    return made
