"""Run DeepSpeed's ZeRO on one to four ranks of this machine, and print what each of them held.

    pip install deepspeed==0.19.8
    python tools/deepspeed_runs.py > tests/deepspeed.json           stages 1 and 2
    python tools/deepspeed_runs.py third > tests/deepspeed3.json    stage 3
    python tools/deepspeed_runs.py one > tests/deepspeed1.json      each stage on one rank alone
    python tools/deepspeed_runs.py chapter > src/memlab/data/ranks/zero3.json   chapter 21's
    python tools/deepspeed_runs.py trainer > tests/deepspeed_trainer.json       under Trainer

tests/test_deepspeed.py, test_deepspeed_alone.py, test_zero3.py and test_deepspeed_trainer.py hold
the derived figures against these files, so that nobody needs DeepSpeed to run them.
"""

import json
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from deepspeed_questions import ALONE, ASKED, AUTO, CHAPTER, CONFIGS, SMALL, THEIRS, THIRD, TRAINER

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "real"))
import deepspeed_trainer  # noqa: E402

from memlab import Model, Run, Sharding  # noqa: E402
from memlab.lab import deepspeed_steps  # noqa: E402
from memlab.lab.ranks import on_ranks  # noqa: E402
from memlab.recipe import Recipe  # noqa: E402
from memlab.sharding.deepspeed_keys import auto  # noqa: E402

FILES = {
    "trainer": (TRAINER, "tests/deepspeed_trainer.json"),
    "third": (THIRD, "tests/deepspeed3.json"),
    "one": (ALONE, "tests/deepspeed1.json"),
    "chapter": (CHAPTER, "src/memlab/data/ranks/zero3.json"),
}


def question(family: str, recipe: str, said: dict[str, Any]) -> tuple[Model, str, Run]:
    """A model, a recipe and a run; two ranks unless it says otherwise."""
    named = Sharding.__annotations__
    devices = {"data": 2, "reduce_bucket_size": 4000} | {n: said[n] for n in named if n in said}
    if "auto" in said:
        devices |= auto(SMALL["hidden_size"], said["zero"])
    run = {name: value for name, value in said.items() if name not in (*named, "auto")}
    if family not in CONFIGS:
        ours = Run.cpu(batch=4, tokens=64, devices=Sharding.of(**devices), **run)
        return Model.preset(family), recipe, ours
    model = Model.from_config(CONFIGS[family])
    return model, recipe, Run.cpu(batch=2, tokens=16, devices=Sharding.of(**devices), **run)


def said_of(run: Run) -> dict[str, Any]:
    """What of a run, and of its devices, does not stand at its default."""
    usual, alone = Run.cpu().to_dict(), Sharding().words()
    said = {name: value for name, value in run.to_dict().items() if value != usual[name]}
    said["devices"] = {n: v for n, v in said["devices"].items() if v != alone[n]}
    return {"backend": "cpu"} | said


def of_trainer(asked: tuple[tuple[str, str, dict[str, Any]], ...]) -> Iterator[dict[str, Any]]:
    """Of each question what each rank held under Trainer."""
    questions = []
    for family, recipe, said in asked:
        run = question(family, recipe, said | {"loop": "trainer"})[-1]
        config = CONFIGS[family] | {"pad_token_id": 0}
        keys = deepspeed_steps.config_of(Recipe.named(recipe), run)["zero_optimization"]
        left = [key for key in keys if "auto" in said and key.removeprefix("stage3_") in AUTO]
        questions.append((recipe, run, config, dict.fromkeys(left, "auto")))
    for (recipe, run, config, auto_keys), ranks in zip(
        questions, held(questions, deepspeed_trainer.several), strict=True
    ):
        run_said = {"config": config, "recipe": recipe, "run": said_of(run)}
        yield run_said | {"auto": list(auto_keys), "ranks": ranks}


def held(questions: list[Any], several: Any) -> list[list[dict[str, Any]]]:
    """Of each question what each rank held; processes start once for all of as many ranks."""
    found: list[list[dict[str, Any]]] = [[] for _ in questions]
    runs = [next(part for part in each if isinstance(part, Run)) for each in questions]
    for ranks in sorted({run.devices.data for run in runs}):
        mine = [n for n, run in enumerate(runs) if run.devices.data == ranks]
        asked = [questions[number] for number in mine]
        for rank in on_ranks(ranks, several, asked, seconds=600):
            for number, told in zip(mine, rank, strict=True):
                found[number].append(told)
    return found


def of_loop(
    third: tuple[tuple[str, str, dict[str, Any]], ...], which: str | None
) -> Iterator[dict[str, Any]]:
    """Of each question what each rank held in a loop of one's own."""
    asked = [(f, r, THEIRS | said) for f, r, said in third] if which else list(third)
    questions = [question(*each) for each in asked]
    for (family, recipe, _), (*_, run), ranks in zip(
        asked, questions, held(questions, deepspeed_steps.several), strict=True
    ):
        run_said = {"config": CONFIGS.get(family, family), "recipe": recipe, "run": said_of(run)}
        yield run_said | {"ranks": ranks}


def main() -> None:
    """Print the record."""
    which = sys.argv[1] if sys.argv[1:] else None
    third, file = FILES[which] if which else (ASKED, "tests/deepspeed.json")
    runs = list(of_trainer(third) if which == "trainer" else of_loop(third, which))
    command = " ".join(["python tools/deepspeed_runs.py", *sys.argv[1:], ">", file])
    document = {
        "command": command,
        "deepspeed": version("deepspeed"),
        "torch": version("torch"),
        "transformers": version("transformers"),
        "python": platform.python_version(),
        "device": "cpu, gloo",
        "unit": "bytes of storages",
        "runs": runs,
    }
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
