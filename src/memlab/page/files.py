"""Which files the page's engine gets: the tested ones, and four that stand in for CPython's."""

import importlib
import json
from pathlib import Path

from ..families import NAMES
from .bare import bare

CORE = Path(__file__).resolve().parent.parent
HERE = "page/micropython/"
FAMILIES = "memlab/families/{}.py"
FIRST = "llama"  # the family that the page asks about at first

# As they are, less what only people read. Of the package itself, and of rooms of which it needs a
# part, MicroPython sees an empty file.
MODULES = (
    "adapters/__init__ adapters/lora adapters/others base/quoted devices engines/apple "
    "explain/changes explain/flags "
    "formats/__init__ formats/format_table formats/formats model/__init__ families/__init__ "
    "model/dropouts model/latent model/mixtures model/model model/parameters model/presets "
    "model/tensors model/values page/adapter_controls page/adapter_tables page/advice "
    "page/answer page/answer_rows page/command page/controls "
    "page/formula_text page/fsdp_tables page/layer_forms page/loop_controls page/loop_tables "
    "page/own_values page/pasted page/peak page/question page/sentences page/serve_controls "
    "page/several page/supported page/table_peak page/torch_loss_tables page/words "
    "recipe/__init__ run/optimizer_loops recipe/recipe recipe/recipe_table recipe/resident "
    "run/__init__ run/adapters run/fields run/offload run/program_defaults run/loops "
    "run/loop_rules run/recipe_choice run/rules run/run sharding/__init__ sharding/deepspeed "
    "sharding/expert_parallel sharding/fsdp sharding/pipeline sharding/sharding "
    "sharding/tensor_parallel step/keys step/windows units verdict"
)
# Of memlab.terms what those import; a page that is read for the first time waits for each byte.
TERMS = (
    "allocator chunk_rows context engine_pool expandable experts gradients kv_cache low_rank "
    "optimizer optimizer_step packed segments sharding tied weights workspaces"
)
# What few questions need, fetched with the first that does: what reads a config.json or an
# adapter_config.json, answers about adapters, about types that memlab does not describe and about
# serving, says after the verdict what an engine makes of the GPU and what is asked, knows a
# teacher; and the records of all families but the first.
LATER = (
    "engines/engine engines/kept engines/llama_cpp engines/pool engines/quantized "
    "page/engine_sentence explain/largest files/adapter_fields model/believed model/config "
    "model/fields model/hub_names model/kind model/module_names model/rotary_keys model/sizes "
    "model/type_kinds page/adapter_file page/adapter_words page/adapters_resident page/asked "
    "page/asked_parts page/asked_serving page/asked_words page/config_words page/llama_cpp_words "
    "page/named page/named_words page/serve_answer page/serve_command page/serve_engine "
    "page/serve_llama_cpp page/serve_words page/sums page/text_sizes page/turns page/types "
    "page/wholes page/ways_out run/teacher"
)
EMPTY = ("", "base/", "step/", "engines/", "explain/", "page/")
FROZEN = (
    "families.Family",
    "model.Model",
    "model.hub_names.Repository",
    "model.latent.Latent",
    "model.tensors.Tensor",
    "recipe.Recipe",
    "sharding.deepspeed.DeepSpeed",
    "sharding.expert_parallel.ExpertParallel",
    "sharding.fsdp.FsdpPolicy",
    "sharding.pipeline.Schedule",
    "sharding.sharding.Sharding",
    "sharding.tensor_parallel.TensorPlan",
    "run.fields.Field",
    "run.loops.Defaults",
    "run.loops.Loop",
    "run.run.Run",
    "run.teacher.Teacher",
    "adapters.lora.Lora",
    "adapters.others.Ia3",
    "adapters.others.Vera",
    "adapters.others.Prompt",
    "terms.context.Reading",
    "explain.changes.Change",
    "explain.changes.Found",
    "devices.Device",
    "engines.engine.Engine",
    "engines.llama_cpp.LlamaCpp",
    "engines.llama_cpp.Loaded",
    "engines.pool.Pool",
    "engines.quantized.Quantized",
    "verdict.Room",
    "verdict.Verdict",
)


def files(prints: bool = False) -> dict[str, str]:
    """Path in the engine -> text of the file.

    prints      with what only a print asks for: memlab.page.bare.OF_PRINTS
    """
    found = {f"memlab/{name}__init__.py": "" for name in EMPTY}
    for name in MODULES.split():
        found[f"memlab/{name}.py"] = bare(text(f"{name}.py"), prints)
    own = found[FAMILIES.format("__init__")]
    for name, what in (("NAMES", NAMES), ("RECORDED", ())):  # not what is there
        listed = next(line for line in own.split("\n") if line.startswith(f"{name} = "))
        own = own.replace(listed, f"{name} = {what}")
    found[FAMILIES.format("__init__")] = own
    found[FAMILIES.format(FIRST)] = bare(text(f"families/{FIRST}.py"), prints)
    for name in ["__init__", *TERMS.split()]:
        found[f"memlab/terms/{name}.py"] = bare(text(f"terms/{name}.py"), prints)
    for name in ("mapping", "message"):
        found[f"memlab/base/{name}.py"] = bare(text(f"{HERE}{name}.py"))
    found["memlab/ledger.py"] = bare(text(f"{HERE}ledger.py"))
    known = bare(text(f"{HERE}frozen.py"))
    fields = json.dumps(fields_of_frozen())
    found["memlab/base/frozen.py"] = known.replace("FIELDS = {}", f"FIELDS = {fields}")
    return found


def later() -> dict[str, str]:
    """The same of what the engine gets when a question needs it."""
    found = {"memlab/files/__init__.py": ""}
    for name in LATER.split():
        found[f"memlab/{name}.py"] = bare(text(f"{name}.py"))
    for name in NAMES:
        if name != FIRST:
            found[FAMILIES.format(name)] = bare(text(f"families/{name}.py"))
    return found


def fields_of_frozen() -> dict[str, list[str]]:
    """The fields of each frozen class, in order."""
    made = {}
    for name in FROZEN:
        module, _, cls = name.rpartition(".")
        found = getattr(importlib.import_module(f"memlab.{module}"), cls)
        made[cls] = list(found.__fields__)
    return made


def text(name: str) -> str:
    return (CORE / name).read_text(encoding="utf-8")
