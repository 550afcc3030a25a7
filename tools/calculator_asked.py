"""The questions after the verdict as HTML: a row of buttons, a line and, for GPUs, a table.

book/calculator/asked.mjs asks the engine, once somebody presses one.
"""

from memlab.page import asked_words
from memlab.page.asked_parts import SERVED, TRAINED
from memlab.page.serve_controls import SERVE, TRAIN

HEADS = (asked_words.GPU, asked_words.MEMORY, asked_words.VERDICT, asked_words.MARGIN)


def asked(say):
    """The section between the verdict and the form; its answer is empty until one is asked for."""
    heads = "".join(f'<th scope="col">{say(name)}</th>' for name in HEADS)
    return f"""<section id="calc-asked" aria-label="{say(asked_words.ALSO_ASKED)}" \
data-asking="{say(asked_words.ASKING)}" data-take="{say(asked_words.TAKE)}" \
data-chosen="{say(asked_words.CHOSEN)}">
{row(TRAIN, TRAINED, say)}
{row(SERVE, SERVED, say)}
<p class="calc-also"><button type="button" id="calc-keep" disabled>\
{say("Keep this to compare")}</button></p>
<p id="calc-asked-line" role="status"></p>
<p id="calc-asked-more"></p>
<div id="calc-asked-gpus" tabindex="0" role="region" \
aria-label="{say(asked_words.WHICH_GPUS)}" hidden>
<table class="memlab-ledger"><thead><tr>{heads}</tr></thead><tbody></tbody></table></div>
</section>"""


def row(use, questions, say):
    made = "".join(
        f'<button type="button" data-what="{what}" aria-pressed="false" disabled>{say(label)}'
        "</button> "
        for what, label in questions
    )
    return f'<p class="calc-also" data-use="{use}">{made.strip()}</p>'
