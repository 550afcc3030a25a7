"""The control of the model as HTML: a field that finds one, and the list, by family and size."""

from functools import cache

from calculator_answer import e

from memlab.base.message import Message
from memlab.model import Model
from memlab.model.presets import HUB, PRESETS
from memlab.model.sizes import billions
from memlab.page import named_words
from memlab.page.controls import OTHER_MODEL


@cache
def families():
    """{family: its presets as (name, billions of parameters, repository), the smallest first}."""
    repository = {preset: name for name, preset in HUB.items()}
    found: dict[str, list[tuple[int, str, str]]] = {}
    for name in PRESETS:
        model = Model.preset(name)
        row = model.parameter_count, name, repository.get(name, "")
        found.setdefault(model.family, []).append(row)
    return {
        family: [(name, billions(count), where) for count, name, where in sorted(found[family])]
        for family in sorted(found)
    }


def model(label, usual, say):
    """A search field above a grouped list; book/calculator/finder.mjs shows what is searched."""
    groups = ""
    for family, rows in families().items():
        listed = "".join(option(name, size, where, usual, say) for name, size, where in rows)
        groups += f'<optgroup label="{e(family)}">{listed}</optgroup>'
    given = say("the config that you gave")
    groups += f'<option value="{OTHER_MODEL}" hidden disabled>{given}</option>'
    return f"""<div class="calc-control calc-model"><label for="calc-model">{say(label)}</label>\
<select id="calc-model" name="model" disabled>{groups}</select>
<label for="calc-find">{say(named_words.FIND)}</label>\
<input id="calc-find" type="search" spellcheck="false" autocapitalize="off" \
aria-controls="calc-model" aria-describedby="calc-found" \
data-matches="{say(named_words.MATCHES)}" disabled>
<p id="calc-found" role="status"></p></div>
"""


def option(name, size, where, usual, say):
    chosen = " selected" if name == usual else ""
    told = say(Message(named_words.LISTED, model=name, size=size))
    return f'<option value="{e(name)}" data-hub="{e(where)}"{chosen}>{told}</option>'
