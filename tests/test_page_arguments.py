"""The arguments beside the form's controls are those of the installed libraries, none invented."""

import dataclasses
import inspect
import re

import calculator
import pytest
from real_steps import quiet

from memlab.explain import serving_words
from memlab.page.arguments import ARGUMENTS, OF_ENGINES, OWN_LOOPS, arguments_of
from memlab.page.controls import CHOICES, NUMBERS, first
from memlab.page.serve_controls import LLAMA_CPP, NO_ENGINE
from memlab.run.loops import LOOPS, TRAINERS, TRL

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries, about each other
CONTROLS = {each[0] for each in (*CHOICES, *NUMBERS)}
# What no library has an argument for: what is asked, whose library it is, and the GPU.
WITHOUT = {"use", "model", "loop", "engine", "card", "gib", "users", "loaded"}
ADAPTERS = {"rank", "targets", "lora_dropout"}
ENGINES = serving_words.THEIRS
FIELDS = {"context": "max_model_len", "kv": "kv_dtype", "share": "utilization", "cards": "tensor"}


def fields(cls):
    return {field.name for field in dataclasses.fields(cls)}


def parameters(function):
    return set(inspect.signature(function).parameters)


def trainers():
    """Of each of transformers' and TRL's trainers the fields of its arguments, and its own."""
    with quiet():
        import transformers
        import trl
        from trl.experimental import gkd
    homes = {"trainer": transformers, "gkd": gkd}
    found = {}
    for loop in TRAINERS:
        home, one = homes.get(loop, trl), LOOPS[loop]
        made = parameters(getattr(home, one.called).__init__)
        found[loop] = fields(getattr(home, one.config)), made
    return found


def loaded():
    """What transformers' from_pretrained() takes, besides the fields of a config."""
    from transformers import PreTrainedConfig, PreTrainedModel

    source = inspect.getsource(PreTrainedModel.from_pretrained)
    source += inspect.getsource(PreTrainedConfig)
    return fields(PreTrainedConfig) | set(re.findall(r'kwargs\.(?:pop|get)\("(\w+)"', source))


def test_each_control_has_its_arguments_or_none():
    assert set(ARGUMENTS) == CONTROLS - WITHOUT
    for control, libraries in ARGUMENTS.items():
        known = {*ENGINES, LLAMA_CPP, NO_ENGINE} if control in OF_ENGINES else set(LOOPS)
        assert set(libraries) <= known and all(libraries.values()), control
    assert set(OF_ENGINES) == {*FIELDS, "dtype", "gguf", "gguf_kv"}


@pytest.mark.parametrize("loop", TRAINERS)
def test_a_trainers_arguments_are_its_own(loop):
    config, trainer = trainers()[loop]
    from transformers import PreTrainedTokenizerBase

    of_call = {"dtype", "attn_implementation"}  # of the model that is loaded for it
    for control, libraries in ARGUMENTS.items():
        if control in ADAPTERS | {"data"} or loop not in libraries:
            continue
        for name in libraries[loop]:
            if control == "tokens" and loop == "trainer":
                assert name in parameters(PreTrainedTokenizerBase.__call__)
            elif control == "trained":
                assert name in trainer if loop in TRL else name == "get_peft_model"
            elif name in of_call:
                assert name in loaded(), name
            else:
                assert name in (trainer if control == "teacher" else config), (control, name)


def test_adapters_are_told_as_peft_names_them():
    import peft

    assert hasattr(peft, "get_peft_model")
    for control in sorted(ADAPTERS):
        for names in ARGUMENTS[control].values():
            assert set(names) <= fields(peft.LoraConfig)


@pytest.mark.parametrize("loop", OWN_LOOPS)
def test_a_loop_in_plain_pytorch_has_torchs_and_transformers_names(loop):
    import peft
    import torch.distributed.pipelining
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.distributed.run import get_args_parser
    from torch.utils.data import DataLoader
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    options = {name for action in get_args_parser()._actions for name in action.option_strings}
    known = {
        "batch": parameters(DataLoader.__init__),
        "tokens": parameters(PreTrainedTokenizerBase.__call__),
        "trained": set(vars(peft)),
        "precision": loaded() | {"torch.autocast"} & {f"torch.{name}" for name in dir(torch)},
        "optimizer": {torch.optim.__name__},
        "optimizer_impl": parameters(torch.optim.AdamW.__init__),
        "attention": loaded(),
        "checkpoint": set(dir(PreTrainedModel)),
        "loss": set(dir(torch.nn.functional)),
        "data": options,
        "zero": {fully_shard.__name__},
        "param_dtype": fields(MixedPrecisionPolicy),
        "tensor": loaded(),
        "pipeline": {torch.distributed.pipelining.__name__},
    }
    own = {control: said[loop] for control, said in ARGUMENTS.items() if loop in said}
    assert set(own) == set(known) | ADAPTERS
    assert {c: set(own[c]) - known[c] for c in known if not set(own[c]) <= known[c]} == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engines_options_are_those_that_its_advice_names(engine):
    for control, field in FIELDS.items():
        name = ARGUMENTS[control][engine][0].split()[0]
        assert name == ENGINES[engine].get(field, f"--{field.replace('_', '-')}"), control
    assert ARGUMENTS["dtype"][NO_ENGINE] == ("dtype", "quantization_config")
    assert set(ARGUMENTS["dtype"][NO_ENGINE]) <= loaded()


def test_the_form_shows_them_and_says_which_control_they_are_of():
    page, usual = calculator.form(str), first()
    for control in ARGUMENTS:
        said = arguments_of(control, usual["loop"], usual["engine"], usual[control])
        place = f'id="calc-{control}-arguments">'
        shown = page.split(place)[1].split("</span>")[0]
        assert re.findall("<code>(.*?)</code>", shown) == list(said)
        named = re.search(rf'<(?:select|input) id="calc-{control}"[^>]*>', page)[0]
        assert f'aria-describedby="calc-{control}-arguments"' in named
    assert arguments_of("share", "plain", "sglang", 88) == ("--mem-fraction-static 0.88",)


def test_no_language_changes_an_argument():
    """They are no texts of the page: nothing asks for their translation."""
    names = {name for said in ARGUMENTS.values() for names in said.values() for name in names}
    assert not names & set(calculator.words()) - {"eager"}
