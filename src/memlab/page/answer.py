"""The page's calculator: a state of its controls in, what to show out. CPython and MicroPython."""

import json

from ..devices import devices
from ..formats import bytes_per_value
from ..model import Model
from ..resident import resident
from ..sharding import Sharding
from ..step.keys import check as check_keys
from ..units import GiB, text
from . import words as say
from .peak import LEAST, SHOWN, TERMS, kinds, letters, value
from .request import OTHER_MODEL, PRECISIONS, checked, recipe_of, shown

SPARE = GiB  # as memlab.fit leaves free by habit: context, kernels' scratch memory, rounding
HILLS = ("forward", "loss", "backward", "optimizer")
ORDER = ("weights", "master", "gradients", "accumulator", "optimizer") + TERMS[1:]

# Keys of a config whose other values make another step than the one that was counted.
USUAL = {
    "gpt2": {"activation_function": "gelu_new", "reorder_and_upcast_attn": False},
    "opt": {"activation_function": "relu", "do_layer_norm_before": True, "layerdrop": 0},
    "gpt_neox": {"hidden_act": "gelu", "use_parallel_residual": True, "rotary_pct": 0.25},
}
ALWAYS_TIED = ("gpt2", "opt")
# The changes of memlab.changes that this page has a control for, in its order.
CHANGES = (
    ("fused AdamW", {"loop": "fused"}, "no time: one kernel, no temporaries"),
    ("SDPA attention", {"attention": "sdpa"}, "no time: no [B, N, T, T] tensor is kept"),
    ("a loss in chunks", {"loss": "chunked"}, "next to no time: a loop over rows"),
    ("autocast", {"precision": "autocast"}, "no time: most products in bf16"),
    ("pure bf16", {"precision": "bf16"}, "no time, but small updates are rounded away"),
    ("block checkpointing", {"checkpoint": "block"}, "a quarter to a third more computing"),
)


class Missing(Exception):
    """The moments of a family in a precision are not here yet; the page fetches them."""


class Unknown(Exception):
    """The peak is not described, for this reason."""


def answer(words, lookup):
    """What the page shows for a state in JSON, as JSON; whatever is wrong comes back as one line.

    Shapes      lookup: (name of a file of moments, kind of step) -> their JSON, "" where there is
                no such kind, "?" where the file has not been fetched
    """
    try:
        return json.dumps(answered(json.loads(words), lookup))
    except Missing as error:
        return json.dumps({"needs": str(error)})
    except (ValueError, TypeError) as error:
        return json.dumps({"error": str(error)})


def answered(given, lookup):
    """The same in Python's own values.

    Raises      ValueError, TypeError for a state that cannot be; Missing
    """
    state = checked(given)
    model = model_of(state)
    recipe = recipe_of(state)
    cut = Sharding(
        data=state["data"], zero=state["zero"], tensor=state["tensor"], pipeline=state["pipeline"]
    )
    cut.check(model)
    if model.learned_positions and state["tokens"] > model.positions:
        raise ValueError(
            say.POSITIONS.format(
                tokens=f"{state['tokens']:,}",
                model=model.name,
                positions=f"{model.positions:,}",
            )
        )
    card = [each for each in devices() if each.name == state["card"]][0]
    limit = max(0, card.limit - SPARE)
    found = {
        "title": f"{model.name} · {recipe.name}",
        "model": repr(model),
        "parameters": model.parameter_count,
        "card": card.name,
        "usable": card.limit,
        "limit": limit,
        "limit_text": text(limit),
        "usable_text": text(card.limit),
        "peak": True,
        "moment": "",
        "hills": [],
        "changes": [],
        "why": "",
    }
    try:
        rows, moment, hills = at_the_peak(model, state, lookup)
        found["moment"] = moment
        found["hills"] = [[name, hills[name], text(hills[name])] for name in sorted(hills)]
    except Unknown as reason:
        rows = fullest(model, state)
        found["peak"], found["why"] = False, str(reason)
    total = sum([rows[name][0] for name in rows])
    found["total"], found["total_text"] = total, text(total)
    found["rows"] = [
        {
            "term": name,
            "bytes": rows[name][0],
            "text": text(rows[name][0]),
            "formula": rows[name][1],
        }
        for name in ORDER
        if name in rows
    ]
    found["fits"] = total <= limit
    found["left"] = text(abs(limit - total))
    if not found["fits"] and found["peak"]:
        found["changes"], found["never"] = cheapest(model, state, limit, lookup)
    found["leaves_out"] = left_out(state, found["peak"])
    found.update(said(found, state))
    return found


def said(found, state):
    """The sentences around the figures."""
    sizes = {"batch": f"{state['batch']:,}", "tokens": f"{state['tokens']:,}"}
    size = say.BATCH.format(**sizes)
    if state["passes"] > 1:
        size = say.BATCHES.format(passes=f"{state['passes']:,}", **sizes)
    made = {
        "advice": "",
        "steps": [say.CHANGED.format(change=c[0], cost=c[1], size=c[2]) for c in found["changes"]],
    }
    model, recipe = found["title"].split(" · ", 1)
    if found["peak"]:
        made["heading"] = say.HEADING.format(
            model=model, recipe=recipe, tokens=size, moment=found["moment"]
        )
    else:
        made["heading"] = say.HEADING_AT_REST.format(model=model, recipe=recipe)
    figures = {
        "card": found["card"],
        "limit": found["limit_text"],
        "usable": found["usable_text"],
        "left": found["left"],
    }
    if found["fits"] and found["peak"]:
        made["verdict"] = say.FITS.format(**figures)
    elif found["fits"]:
        made["verdict"] = say.FITS_SO_FAR.format(why=found["why"], **figures)
    else:
        made["verdict"] = say.TOO_MUCH.format(**figures)
        if found["changes"]:
            made["advice"] = say.CHEAPEST
        elif found["peak"]:
            made["advice"] = say.NO_CHANGE.format(never=found["never"])
    tops = {name: size for name, _, size in found["hills"]}
    made["heights"] = ""
    if tops:
        order = [name for name in HILLS if name in tops]
        made["heights"] = say.HILLS.format(hills=" · ".join([f"{n} {tops[n]}" for n in order]))
    parts = ", ".join([f"{row['term']} {row['text']}" for row in found["rows"]])
    made["picture"] = say.PICTURE.format(
        size=found["total_text"], parts=parts, limit=found["limit_text"]
    )
    made["scale"] = say.SCALE.format(limit=found["limit_text"], card=found["card"])
    return made


def model_of(state):
    """The preset, or the model of the config."""
    if state["model"] != OTHER_MODEL:
        return Model.preset(state["model"])
    config = state["config"]
    model = Model.from_config(config)
    name = config.get("_name_or_path")
    if isinstance(name, str) and name.strip():
        words = "".join([c if " " <= c < "\x7f" else "?" for c in name.strip()])
        return model.replace(name=words)
    return model.replace(name=say.YOURS.format(family=model.family))


def fullest(model, state):
    """The rows that stay from step to step, of the pipeline stage that holds most."""
    recipe = recipe_of(state)
    cut = Sharding(
        data=state["data"], zero=state["zero"], tensor=state["tensor"], pipeline=state["pipeline"]
    )
    recipe = recipe.replace(name=recipe.name, sharding=cut)
    stages = sorted({0, 1, cut.pipeline - 1} & set(range(cut.pipeline)))
    best = None
    for stage in stages:
        figures = resident(model, recipe, stage)
        total = sum([figures[name] for name in figures])
        if best is None or total > best[0]:
            best = (total, figures)
    count = model.parameter_count
    return {name: (best[1][name], formula_of(name, count, recipe)) for name in best[1]}


def formula_of(term, count, recipe):
    """How a resident term comes about, in words that the page shows beside it."""
    stored = {
        "weights": recipe.weights,
        "master": recipe.master,
        "gradients": recipe.gradients,
    }
    if term in stored:
        return f"P · b = {count:,} · {bytes_per_value(stored[term]):g} B ({stored[term]})"
    # Rounded as whole numbers: the engines print the last digit of a float differently.
    each = int(recipe.bytes_per_parameter()["optimizer"] * 1000 + 0.5) / 1000
    return say.OPTIMIZER_STATES.format(optimizer=recipe.optimizer, size=f"{each:g}")


def at_the_peak(model, state, lookup):
    """{term: (bytes, formula)} at the highest moment, its hill, and the height of each hill.

    Raises      Unknown where the step is not described; Missing
    """
    moments = moments_of(model, state, lookup)
    sizes = letters(model, state["batch"], state["tokens"])
    kept = fullest(model, state)
    below = sum([kept[name][0] for name in kept if name != "gradients"])
    known = {}

    def worth(products):
        total = 0
        for word in products:
            if word not in known:
                known[word] = value({word: 1}, sizes)
            total += products[word] * known[word]
        return total

    best, hills = None, {}
    for hill, parts in moments:
        room = optimizer_room(model, state, kept) if hill == "optimizer" else 0
        height = below + room + sum([worth(parts[name]) for name in parts])
        if height > hills.get(hill, -1):
            hills[hill] = height
        if best is None or height > best[0]:
            best = (height, hill, parts, room)
    _, hill, parts, room = best
    rows = {name: kept[name] for name in kept if name != "gradients"}
    for name in TERMS:
        if name in parts or (name == "other" and room):
            products = parts.get(name, {})
            size = worth(products) + (room if name == "other" else 0)
            rows[name] = (size, spelled(products, sizes, room if name == "other" else 0))
    return rows, hill, hills


def optimizer_room(model, state, kept):
    """What AdamW's loop needs for a moment: with foreach, a root for each second moment."""
    if state["optimizer"] != "adamw" or state["loop"] == "fused":
        return 0
    return kept["master"][0] if "master" in kept else kept["weights"][0]


def moments_of(model, state, lookup):
    """The moments of this kind of step, or why there are none."""
    if reason := not_described(model, state):
        raise Unknown(reason)
    precision = PRECISIONS[state["precision"]][1]
    family = "llama" if model.family == "mistral" else model.family
    kind = kinds(
        model,
        precision,
        state["attention"],
        state["checkpoint"],
        state["loss"],
        state["batch"],
        state["passes"],
    )
    name = f"{family}.{precision}"
    found = lookup(name, kind)
    if found == "?":
        raise Missing(name)
    if not found:
        raise Unknown(say.NO_KIND)
    return json.loads(found)


def not_described(model, state):
    """Why the page knows no peak, or nothing."""
    if state["tensor"] > 1 or state["pipeline"] > 1:
        return say.DIVIDED
    if state["zero"] > 1 and state["data"] > 1:
        return say.ZERO.format(stage=state["zero"])
    if model.family == "nanochat":
        return say.NANOCHAT
    if reason := other_flags(model):
        return reason
    for name, size, least in (
        ("L", model.layers, SHOWN),
        ("D", model.d_model, LEAST["D"]),
        ("F", model.d_ff, LEAST["F"]),
        ("V", model.vocab, LEAST["V"]),
        ("N", model.heads, 2),
        (say.ROWS, state["batch"] * state["tokens"], 64),
    ):
        if size < least:
            return say.SMALL.format(what=name, size=size, least=least)
    if model.head_dim % 8 or model.head_dim > 256:
        return say.HEADS.format(size=model.head_dim)
    return other_keys(model, state)


def other_flags(model):
    """What of the model is not what its family does."""
    usual = Model(
        family=model.family,
        layers=model.layers,
        d_model=model.d_model,
        d_ff=model.d_ff,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=model.head_dim,
        vocab=model.vocab,
        positions=model.positions,
        tied=model.family in ALWAYS_TIED or model.tied,
        name=model.name,
    )
    if usual != model:
        return say.DIFFERS.format(family=model.family)
    square = model.heads == model.kv_heads and model.heads * model.head_dim == model.d_model
    if model.family in ("gpt2", "opt", "gpt_neox") and not square:
        return say.SQUARE.format(family=model.family)
    return ""


def other_keys(model, state):
    """What of the config makes another step."""
    config = state.get("config") or {}
    try:
        check_keys(model.family, config, 0)
    except ValueError as error:
        return str(error)
    usual = USUAL.get(model.family, {})
    for key in sorted(usual):
        if config.get(key, usual[key]) != usual[key]:
            return say.KEY.format(key=key, value=shown(config[key]))
    for key in ("rope_parameters", "rope_scaling"):
        rope = config.get(key) or {}
        kind = rope.get("rope_type") or rope.get("type") or "default"
        if kind in ("dynamic", "longrope") or (model.family == "gpt_neox" and kind != "default"):
            return say.ROPE.format(key=key, value=shown(kind))
    if config.get("use_sliding_window"):
        return say.SLIDING
    window = config.get("sliding_window", 4096) if model.family == "mistral" else None
    if window is not None and (not isinstance(window, int) or state["tokens"] >= window):
        return say.WINDOW.format(tokens=f"{state['tokens']:,}", window=shown(window))
    return ""


def spelled(products, sizes, room=0):
    """A sum of products as a person writes it: the four largest, and how many more."""
    parts = sorted(products, key=lambda word: (-value({word: products[word]}, sizes), word))
    said = []
    for word in parts[:4]:
        said.append(in_letters(word, products[word]))
    if len(parts) > 4:
        rest = sum([value({word: products[word]}, sizes) for word in parts[4:]])
        said.append(say.SMALLER.format(size=text(rest), count=len(parts) - 4))
    if room:
        said = [say.ROOTS.format(size=text(room))] + said
    return " + ".join(said) if said else "0"


def in_letters(word, count):
    """One product as the book writes it: "10 · B · T · (L−4) · N · H"."""
    left = list(word)
    while "G" in left and "K" in left:  # N / K times K
        left.remove("G")
        left.remove("K")
        left.append("N")
    while "h" in left and count % 8 == 0:  # H is eight of them
        left.remove("h")
        left.append("H")
        count //= 8
    names = {"M": "(L−4)", "U": "(T+1)", "W": "⌈T⌉", "h": "H/8", "G": "N/K"}
    order = "BTUWCMDFGNKHhVP"
    return " · ".join(
        [f"{count:,}"] + [names.get(x, x) for x in order for _ in range(left.count(x))]
    )


def cheapest(model, state, limit, lookup):
    """memlab.changes.cheapest_change with the changes that this page has: what to change, in order.

    Returns     [[name, what it costs, peak in words]], and in words why nothing helps, or ""
    """
    known = {}

    def peak(made):
        now = dict(state)
        for _, setting, _ in made:
            now.update(setting)
        if now["batch"] * now["tokens"] < 64:
            raise ValueError("too few rows")
        key = json.dumps([now[name] for name in sorted(now) if name != "config"])
        if key not in known:
            rows, _, _ = at_the_peak(model, now, lookup)
            known[key] = sum([rows[name][0] for name in rows])
        return known[key]

    def better(made, change):
        more = [c for c in made if not all([name in change[1] for name in c[1]])] + [change]
        try:
            return more if peak(more) < peak(made) else made
        except (ValueError, Unknown):
            return made

    made, before = [], None
    while made != before:
        before = list(made)
        for change in CHANGES:
            if change not in made and peak(made) > limit:
                made = better(made, change)
    made = [change for change in CHANGES if change in made]
    parts = 1
    while peak(made) > limit and parts < state["batch"]:
        parts *= 2
        passes = parts * state["passes"]
        setting = {"batch": -(-state["batch"] // parts), "passes": passes}
        made = better(made, (say.MICRO_BATCHES.format(passes=passes), setting, say.LESS_PARALLEL))
    least = peak(made)
    if least > limit:
        return [], say.NEVER.format(size=text(least))
    for change in list(reversed(made)):
        without = [other for other in made if other is not change]
        if peak(without) <= limit:
            made = without
    return [[c[0], c[2], text(peak(made[: i + 1]))] for i, c in enumerate(made)], ""


def left_out(state, peak):
    """What the total does not hold, one line each."""
    said = [say.WITHOUT]
    if not peak:
        said.append(say.ONLY_IN_A_STEP)
    else:
        said.append(say.DROPOUT)
        if state["optimizer"] != "adamw":
            said.append(say.OPTIMIZER_MOMENT)
        if state["precision"] == "zero":
            said.append(say.COPIES)
        if state["data"] > 1:
            said.append(say.BUCKETS)
    return said
