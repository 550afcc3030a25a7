"""The calculator's page, and the first page's small one: form and one worked answer as HTML, and
the files that they load.

The form comes from the table that also checks what is asked (memlab.page.controls), the answer from
the function that the page's engine runs. The engine itself, MicroPython compiled to WebAssembly, is
not part of this repository: `npm ci` brings it (package.json), `make book` runs that where there is
npm, and a page without it says so and shows the answer alone.
A long file, because the form and what is staged for it are read together.
"""

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import cpython
import peaks_seal
from calculator_answer import e, result, speaker
from calculator_asked import asked
from calculator_home import HOME, HOME_CHOICES, step
from calculator_models import model as of_models
from calculator_screen import lead, presets, top, unscripted

from memlab.base.message import Message, parts
from memlab.devices import devices
from memlab.engines import apple
from memlab.explain.changes import CHANGES
from memlab.model import hub_names, sizes
from memlab.model.presets import PRESETS
from memlab.page import (
    adapter_words,
    asked_words,
    config_words,
    engine_sentence,
    llama_cpp_words,
    named_words,
    serve_words,
    several,
    shared_words,
    simulated_words,
    ways_out,
)
from memlab.page import words as sentences
from memlab.page.answer import ORDER, answered
from memlab.page.arguments import ARGUMENTS, OF_ENGINES, arguments_of
from memlab.page.controls import CHOICES, NUMBERS, OWN, PRECISIONS, first
from memlab.page.files import files, later
from memlab.page.peak_files import reader
from memlab.page.question import HALF
from memlab.page.sentences import CHANGES as CALLED
from memlab.page.serve_controls import CHOICES as SERVING
from memlab.page.serve_controls import SERVE, TRAIN
from memlab.page.supported import of_run
from memlab.page.table_peak import HILLS
from memlab.plot.colours import COLOURS
from memlab.recipe import Recipe
from memlab.run import Run

ROOT = Path(__file__).resolve().parent.parent
ENGINE = ROOT / "node_modules" / "@micropython" / "micropython-webassembly-pyscript"
ENGINE_FILES = ("micropython.mjs", "micropython.wasm")
SCRIPTS = ROOT / "book" / "calculator"
MARKS = {"calculator.md": "<!-- the-calculator -->", "intro.md": "<!-- the-step -->"}
PLACE = "_static/calculator"

FIRST = first()
NAMES = {*PRESETS, *(card.name for card in devices() + apple.macs())}  # which no language changes
NAMES |= {value for name, _, values in SERVING if "gguf" in name for value, _ in values}
NAMES |= {"vLLM", "SGLang", "llama.cpp", "bf16", "fp16", "FP8"}
NAMES |= {"sdpa", "eager", "foreach", "fused"}
SLIDERS = {
    "batch": [n for k in range(11) for n in (2**k, 3 * 2**k)],
    "tokens": [n for k in range(8, 18) for n in (2**k, 3 * 2 ** (k - 1))],
}
SLIDERS["batch"] = sorted(set(SLIDERS["batch"]))
SLIDERS |= {"users": SLIDERS["batch"], "context": SLIDERS["tokens"]}
SLIDERS |= {"data": [2**k for k in range(11)], "cards": [2**k for k in range(5)]}
SLIDERS |= {"tensor": SLIDERS["cards"], "pipeline": SLIDERS["cards"]}
SLIDERS |= {"micro_batches": [2**k for k in range(9)], "rank": [2**k for k in range(2, 10)]}
SLIDERS |= {"completion": [0, *SLIDERS["tokens"][:-6]], "lora_dropout": list(range(0, 55, 5))}
SLIDERS |= {"gib": [4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 141, 180, 288]}
SLIDERS |= {"share": [*range(50, 90, 5), *range(90, 100)]}
# Title, names of the controls, and whom they are for where not for both; a style sheet shows those
# of what is chosen.
GROUPS = (
    ("Model", ("model",), ""),
    ("Batch", ("batch", "tokens", "micro_batches"), TRAIN),
    (
        "Training",
        (
            "loop",
            "teacher",
            "teacher_weights",
            "completion",
            "trained",
            "rank",
            "targets",
            "lora_dropout",
            "precision",
            "optimizer",
            "optimizer_impl",
            "attention",
            "checkpoint",
            "loss",
        ),
        TRAIN,
    ),
    ("Conversations", ("users", "context"), SERVE),
    (
        "Inference",
        ("engine", "gguf", "gguf_kv", "dtype", "kv", "share", "loaded", "cards"),
        SERVE,
    ),
    ("GPU", ("card", "gib"), ""),
    ("Parallelism", ("data", "zero", "param_dtype", "tensor", "pipeline"), TRAIN),
)
# What a script shows beside the controls when another framework or engine is chosen.
OF_ARGUMENTS = {"arguments": ARGUMENTS, "of_engines": OF_ENGINES}
NO_ENGINE = (
    "This copy of the book was built without the calculator's engine: below is one worked example. "
    "With Node.js installed, “npm ci” and then “make book” in the book's folder "
    "bring the engine."
)


LOADING = "The calculator is loading …"
IN_STEPS = "{label}, in steps"
# An answer that says nothing: what stands around it then are the page's own labels.
NOTHING: dict[str, Any] = dict.fromkeys(
    ("verdict", "picture", "scale", "divides", "advice", "heading", "heights"), ""
)
NOTHING |= {"total_text": "", "rows": [], "steps": [""], "flags": [""], "leaves_out": []}
NOTHING["over"] = []
NOTHING |= {"hills": [], "stacks": {}, "moment": "", "serving": "", "command": "", "script": ""}
NOTHING |= {"fits": True, "state": "yes", "total": 0, "usable": 1, "limit": 1}


def key():
    """A hash over what the page is made from."""
    made = hashlib.sha256(peaks_seal.key().encode())
    made.update(json.dumps([files(), later(), cpython.there()]).encode())
    for name in ENGINE_FILES:
        if (ENGINE / name).exists():
            made.update((ENGINE / name).read_bytes())
    return made.hexdigest()


def has_engine():
    return all((ENGINE / name).exists() for name in ENGINE_FILES)


def changes():
    """The changes that some step with moments can have: those that the page may advise."""
    recipe, run = Recipe(), Run(tokens=4096)
    return [change for change in CHANGES if not of_run(change.turn(recipe, run)[1])]


def words():
    """All that the page says, for translators: patterns of sentences, then labels, each once."""
    found = [IN_STEPS, "{card} ({size} GB, usable {usable})", "unknown"]
    listed = vars(sentences) | vars(serve_words) | vars(shared_words)
    listed |= vars(adapter_words) | vars(simulated_words) | vars(config_words)
    listed |= vars(llama_cpp_words) | vars(named_words) | vars(several)
    listed["A_SINGLE"] = engine_sentence.A_SINGLE
    listed["WAYS"] = [ways_out.ON_APPLE, ways_out.NO_COPY_OF_WEIGHTS, ways_out.WITH_A_COPY]
    listed |= {"OF_APPLE": apple.ALONE, "HUB_SAYS": hub_names.SAYS, "SIZE_SAYS": sizes.SAYS}
    listed |= {f"ASKED_{name}": text for name, text in vars(asked_words).items()}
    for name, value in listed.items():
        if name.isupper():
            found += [value] if isinstance(value, str) else value
    called = [(CALLED.get(change.name, change.name), change.cost) for change in changes()]
    found += [word for pair in called for word in pair]
    labels = sorted([HALF, *(label for label, _ in PRECISIONS.values())], key=len, reverse=True)
    found += [*labels, *(f"{label}, {{optimizer}}" for label in labels)]  # a recipe's name
    found += [*ORDER, *HILLS, *(f"{name} {{size}}" for name in (*ORDER, *HILLS))]
    found += [LOADING, NO_ENGINE]
    heard = []

    def place(told):
        heard.append(told.pattern if isinstance(told, Message) else told)
        return f"\0{len(heard) - 1}\0"

    page = lead(LOADING, True, place) + unscripted(place) + presets(place, ())
    page += top(NOTHING, place) + asked(place) + form(place) + result(NOTHING, place)
    page += step(NOTHING, place)
    shown = [heard[int(number)] for number in page.split("\0")[1::2]]  # as a reader meets them
    found += [text for text in shown if re.search(r"[^\W\d_]{2}", text) and text not in NAMES]
    return list(dict.fromkeys(found))


def stage(source, words=None, language="en"):
    """Put forms and answers into the staged pages that have a mark, and the files beside them.

    words       English -> translation, as `words` lists them; None for the English page
    """
    if not (source / "calculator.md").exists():
        return  # a book without this page
    target = source / PLACE
    target.mkdir(parents=True)
    for name, made in (("calculator.md", whole), ("intro.md", home)):
        page = source / name
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(MARKS[name], raw(made(words, language))), encoding="utf-8")
    shutil.rmtree(source / "calculator")  # the scripts, which Sphinx need not see as pages
    for script in sorted(SCRIPTS.glob("*.mjs")):
        lines = script.read_text(encoding="utf-8").splitlines(keepends=True)
        spoken = [line.lstrip() for line in lines if not line.lstrip().startswith("//")]
        (target / script.name).write_text("".join(spoken), encoding="utf-8")
    for name, texts in (("python", files()), ("later", later())):
        # Those of a folder together, short ones first: so they compress best.
        order = sorted(texts, key=lambda path: (path.rpartition("/")[0], len(texts[path]), path))
        packed = json.dumps({path: texts[path] for path in order}, separators=(",", ":"))
        (target / f"{name}.json").write_text(packed, encoding="utf-8")
    shutil.copy(SCRIPTS / "types.json", target)
    shutil.copytree(peaks_seal.kept(), target / "peaks", ignore=shutil.ignore_patterns("*key"))
    if has_engine():
        for name in ENGINE_FILES:
            shutil.copy(ENGINE / name, target)


def raw(text):
    return f"```{{raw}} html\n{text}\n```"


def whole(words=None, language="en"):
    """The page's form and its answer to the defaults."""
    found, say = answered({}, reader(peaks_seal.kept())), speaker(words, language)
    note = LOADING if has_engine() else NO_ENGINE
    return f"""<div class="calc">
{lead(note, has_engine(), say)}
{unscripted(say)}
{top(found, say)}
{asked(say)}
{form(say, found["own"])}
{result(found, say)}
{presets(say)}
{table({"defaults": FIRST} | OF_ARGUMENTS, words, language)}
<script src="{PLACE}/start.mjs"></script>
</div>"""


def home(words=None, language="en"):
    """The first page's three controls and its answer to what they show."""
    found = answered(HOME, reader(peaks_seal.kept()))
    choices = {name: [(v, parts(label)) for v, label in HOME_CHOICES[name]] for name in HOME}
    given = {"defaults": {name: FIRST[name] for name in HOME}, "choices": choices}
    engine, say = "yes" if has_engine() else "no", speaker(words, language)
    return f"""<div class="calc calc-home">
{step(found, say)}
{presets(say)}
{table(given, words, language)}
<script src="{PLACE}/wake.mjs" data-engine="{engine}"></script>
</div>"""


def table(given, words, language="en"):
    """What the scripts need to know."""
    given = given | {"colours": COLOURS, "hills": HILLS, "order": ORDER}
    if words:
        given |= {"words": words, "language": language}
    # In a script element nothing but "<" could end it.
    data = json.dumps(given).replace("<", "\\u003c")
    return f'<script type="application/json" id="calc-table">{data}</script>'


def form(say, own=None):
    """The controls. own: what to call the default of some, as memlab.page.own_values says it."""
    groups = [group(say, title, names, whose, own or {}) for title, names, whose in GROUPS]
    return f'<form id="calc-form" autocomplete="off">\n{use(say)}{"".join(groups)}</form>'


def use(say):
    """Train or serve: the one choice that all can see, and that shows the other controls."""
    label, values = next((label, values) for name, label, values in CHOICES if name == "use")
    buttons = "".join(
        f'<label><input type="radio" name="use" value="{value}"'
        f"{' checked' if value == FIRST['use'] else ''} disabled><span>{say(words)}</span></label>"
        for value, words in values
    )
    return f'<fieldset class="calc-use"><legend>{say(label)}</legend>{buttons}</fieldset>\n'


def group(say, title, names, whose, own):
    inner = "".join(control(name, say, own) for name in names)
    if "model" in names:
        inner += config(say)
    only = f' data-use="{whose}"' if whose else ""
    return f"<fieldset{only}><legend>{say(title)}</legend>\n{inner}</fieldset>\n"


def config(say):
    label = (
        "The config.json of your model, or the adapter_config.json of its adapters; or drop the "
        "file here"
    )
    return f"""<details><summary>{say("Paste a config.json or adapter_config.json")}</summary>
<label for="calc-config">{say(label)}</label>
<textarea id="calc-config" rows="5" spellcheck="false" disabled></textarea>
<label for="calc-file">{say("or choose the file")}</label>
<input id="calc-file" type="file" accept=".json,application/json" disabled>
<output id="calc-read" for="calc-config"></output>
</details>
"""


def control(name, say, own):
    for known, label, values in CHOICES:
        if known == name == "model":
            return of_models(label, FIRST[name], say)
        if known == name:
            called = [(v, own.get(name, words) if v == OWN else words) for v, words in values]
            return choice(name, label, called, say)
    for known, label, least, most in NUMBERS:
        if known == name:
            return number(name, label, least, most, say)
    raise KeyError(name)


def choice(name, label, values, say):
    options = "".join(
        f'<option value="{e(value)}"{" selected" if value == FIRST[name] else ""}>{say(words)}'
        "</option>"
        for value, words in values
    )
    return (
        f'<div class="calc-control"><label for="calc-{name}">{say(label)}</label>'
        f'<select id="calc-{name}" name="{name}"{described(name)} disabled>{options}</select>'
        f"{arguments(name)}</div>\n"
    )


def described(name):
    """Which element names a control's arguments, for those who cannot see that it is below."""
    return f' aria-describedby="calc-{name}-arguments"' if name in ARGUMENTS else ""


def arguments(name):
    """The arguments of a control in the reader's library: code, in every language the same."""
    if name not in ARGUMENTS:
        return ""
    said = arguments_of(name, FIRST["loop"], FIRST["engine"], FIRST[name])
    codes = " ".join(f"<code>{e(each)}</code>" for each in said)
    return f'<span class="calc-arguments" id="calc-{name}-arguments">{codes}</span>'


def number(name, label, least, most, say):
    field = (
        f'<div class="calc-control"><label for="calc-{name}">{say(label)}</label>'
        f'<input id="calc-{name}" name="{name}" type="number" inputmode="numeric" min="{least}" '
        f'max="{most}" step="1" value="{FIRST[name]}"{described(name)} disabled>'
    )
    if name in SLIDERS:
        values, words = SLIDERS[name], Message(IN_STEPS, label=label)
        field += (
            f'<input type="range" aria-label="{say(words)}" data-for="{name}" min="0" '
            f'max="{len(values) - 1}" value="{values.index(FIRST[name])}" '
            f"data-values='{json.dumps(values)}' disabled>"
        )
    return f"{field}{arguments(name)}</div>\n"
