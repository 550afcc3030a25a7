"""An answer of the calculator as HTML: the verdict, the bar, the ledger, and what would help.

What a reader reads goes through `say`: a text or a message in, HTML in the page's language out.
"""

import html

from memlab.base.message import rendered
from memlab.page import simulated_words
from memlab.page.answer import ORDER
from memlab.page.table_peak import HILLS
from memlab.plot.colours import COLOURS

MARKED = ' class="calc-highest"'


def e(value):
    return html.escape(str(value), quote=True)


def speaker(words=None, language="en"):
    """The `say` of a language. words: English -> translation; None for the English page."""
    return lambda told: e(rendered(told, words or {}, language))


def result(found, say):
    rows = "".join(row(each, say) for each in found["rows"])
    pairs = zip(found["steps"], found["flags"], strict=True)
    steps = "".join(change(*each, say) for each in pairs)
    over = "".join(change(words, flag, say) for words, flag, _ in found["over"])
    left = "".join(f"<li>{say(words)}</li>" for words in found["leaves_out"])
    heads = "".join(f'<th scope="col">{say(name)}</th>' for name in ("term", "size", "bytes"))
    return f"""<section id="calc-result" tabindex="-1" \
aria-label="{say("What it needs, term by term")}">
<p id="calc-divides">{say(found["divides"])}</p>
<div id="calc-advice" tabindex="-1">
<p id="calc-changes-head">{say(found["advice"])}</p>
<ol id="calc-changes">{steps}</ol>
<ul id="calc-over" class="calc-plain">{over}</ul>
</div>
<table class="memlab-ledger"><caption id="calc-title">{say(found["heading"])}</caption>
<thead><tr>{heads}</tr></thead>
<tbody id="calc-rows">{rows}</tbody>
<tfoot><tr><th scope="row">{say("total")}</th><td id="calc-total">{say(found["total_text"])}</td>\
<td id="calc-total-bytes">{say(f"{found['total']:,}")}</td></tr></tfoot></table>
{formula(say)}
{hills(found, say)}
{compare(say)}
<p id="calc-serving">{say(found["serving"])}</p>
<p>{say("Left out:")}</p>
<ul id="calc-left-out">{left}</ul>
<p><button type="button" id="calc-copy" data-copied="{say("Copied")}" disabled>\
{say("Copy a link to this")}</button>
<button type="button" id="calc-picture" disabled>{say("Download the picture")}</button>
<input id="calc-link" type="text" readonly hidden \
aria-label="{say("The address of what you chose")}">
<span id="calc-copied" role="status" data-copied="{say("The link was copied.")}" \
data-select="{say("The browser did not copy it; the address is selected here.")}"></span></p>
<p id="calc-address"></p>
<details><summary>{say("Ask memlab the same on a command line, or in Python")}</summary>
<pre><code id="calc-command">{e(found["command"])}</code></pre>
<pre><code id="calc-script">{e(found["script"])}</code></pre></details>
</section>"""


def formula(say):
    """Where the formula of a term stands, once there is one that a reader points at."""
    usual = say("Point at a term to read its formula.")
    return f'<p id="calc-formula" aria-live="polite" data-usual="{usual}">{usual}</p>'


def count(say):
    """Shown by book/calculator/count.mjs where no table has the step that is asked about."""
    return f"""<p id="calc-count" hidden>\
<button type="button" disabled>{say(simulated_words.OFFER)}</button> \
<span>{say(simulated_words.PRICE)}</span></p>"""


def compare(say):
    """Filled by book/calculator/compare.mjs, once there is something to compare with.

    The button that keeps an answer stands under the verdict: calculator_asked.py.
    """
    heads = ("term", "kept", "now", "difference")
    columns = "".join(f'<th scope="col">{say(name)}</th>' for name in heads)
    return f"""<section id="calc-compare" tabindex="-1" \
aria-label="{say("Two answers side by side")}" hidden>
<div class="calc-pair">
<p><strong>{say("kept")}</strong> <span id="calc-kept"></span><br>\
<span id="calc-kept-verdict"></span></p>
<p><strong>{say("now")}</strong> <span id="calc-now"></span><br>\
<span id="calc-now-verdict"></span></p>
</div>
<table class="memlab-ledger"><thead><tr>{columns}</tr></thead>
<tbody id="calc-compared"></tbody><tfoot id="calc-compared-total"></tfoot></table>
<p><button type="button" id="calc-forget" disabled>{say("Forget what was kept")}</button></p>
</section>"""


def bar(found):
    most = max(found["total"], found["usable"])
    left, made = 0.0, ""
    for each in found["rows"]:
        width = 1000 * each["bytes"] / most
        fill = colour(each["term"])
        made += f'<rect x="{left:.2f}" y="6" width="{width:.2f}" height="48" fill="{fill}"/>'
        left += width
    at = 1000 * found["limit"] / most
    return made + f'<line x1="{at:.2f}" x2="{at:.2f}" y1="0" y2="60" class="calc-limit"/>'


def change(words, flag, say):
    return f"<li>{change_inside(words, flag, say)}</li>"


def change_inside(words, flag, say):
    """One change: what it is, its line in the reader's library, and a button that makes it."""
    line = f"<br><code>{e(flag)}</code>" if flag else ""
    make = say("Make this change")
    button = f'<button type="button" class="calc-apply" disabled>{make}</button>'
    return f"<span>{say(words)}</span>{line}<br>{button}"


def hills(found, say):
    """The picture of the step: its hills side by side, each in the colours of what it holds."""
    return f"""<div class="calc-hills">
<p id="calc-hills">{say(found["heights"])}</p>
<svg id="calc-towers" role="img" aria-labelledby="calc-hills" viewBox="0 0 1000 300" \
preserveAspectRatio="none">{towers(found)}</svg>
<ol id="calc-tops" class="calc-plain" aria-hidden="true">{tops(found, say)}</ol>
<ul id="calc-legend" class="calc-plain">{legend(found, say)}</ul>
</div>"""


def towers(found):
    """The hills, the line of the card across them; book/calculator/towers.mjs draws the same."""
    names = [name for name in HILLS if name in found["stacks"]]
    if not names:
        return ""
    most = max(found["limit"], *(sum(size for _, size in found["stacks"][n]) for n in names))
    step, made = 1000 / len(names), ""
    for i, name in enumerate(names):
        inside, y = "", 300.0
        for term, size in found["stacks"][name]:
            height = 285 * size / most
            y -= height
            inside += (
                f'<rect data-term="{e(term)}" x="{i * step + 25:.1f}" y="{y:.2f}" '
                f'width="{step - 50:.1f}" height="{height:.2f}" fill="{colour(term)}"/>'
            )
        kind = "calc-tower-top" if name == found["moment"] else "calc-tower"
        made += f'<g class="{kind}" data-hill="{e(name)}">{inside}</g>'
    at = 300 - 285 * found["limit"] / most
    return made + f'<line x1="0" x2="1000" y1="{at:.2f}" y2="{at:.2f}" class="calc-limit"/>'


def tops(found, say):
    """The name and the size of each hill, below it."""
    sizes = {name: size for name, _, size in found["hills"]}
    return "".join(
        f"<li{MARKED if name == found['moment'] else ''}><span>{say(name)}</span> "
        f"<span>{say(sizes[name])}</span></li>"
        for name in HILLS
        if name in sizes
    )


def legend(found, say):
    """What the colours of the hills mean."""
    inside = {term for stack in found["stacks"].values() for term, _ in stack}
    return "".join(f"<li>{swatch(term)}{say(term)}</li>" for term in ORDER if term in inside)


def colour(term):
    return COLOURS.get(term, COLOURS["other"])


def swatch(term):
    return (
        '<svg viewBox="0 0 10 10" aria-hidden="true">'
        f'<rect width="10" height="10" fill="{colour(term)}"/></svg>'
    )


def row(each, say):
    term = each["term"]
    return (
        '<tr><th scope="row"><button type="button" class="calc-term" '
        f'data-term="{e(term)}" data-formula="{say(each["formula"])}">'
        f"{swatch(term)}{say(term)}</button></th>"
        f"<td>{say(each['text'])}</td><td>{say(format(each['bytes'], ','))}</td></tr>"
    )
