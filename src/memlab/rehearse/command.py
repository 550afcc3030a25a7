"""A command line as people type it: which program it runs, with what, on how many ranks.

python train.py ..., python -m package ..., train.py ..., torchrun ... train.py ...,
accelerate launch ... train.py ..., deepspeed ... train.py ...; with NAME=VALUE before any of them.
"""

import contextlib
import importlib.util
import inspect
import io
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

PYTHON = re.compile(r"python[\d.]*(\.exe)?")
VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.S)
FLAGS = re.compile(r"-[bBdEiIOPqsSuvx]+")  # of Python, without a value


@dataclass
class Program:
    """What is run.

    path        of the file; of a module or a function too
    module      its name, where it is run as one
    function    what is called, where it is no file
    arguments   without the program's own name; those of the function
    environment variables that its launcher sets
    ranks       processes in all; None: nobody started several
    local       of them on this machine
    cards       that one process sees: those of CUDA_VISIBLE_DEVICES
    numbered    whether each rank is told its number as --local_rank
    """

    path: str
    arguments: list[Any]
    module: str = ""
    function: Callable[..., Any] | None = None
    environment: dict[str, str] = field(default_factory=dict)
    ranks: int | None = None
    local: int = 1
    cards: int = 1
    numbered: bool = False

    @property
    def folder(self) -> str:
        """The one whose lines are the reader's."""
        return os.getcwd() if self.module else str(Path(self.path).resolve().parent)


def program(words: list[str]) -> Program:
    """What a command line runs.

    Raises      ValueError for a command that is no Python program, and for a file that is not there
    """
    environment: dict[str, str] = {}
    while words and (said := VARIABLE.fullmatch(words[0])):
        environment[said[1]] = said[2]
        words = words[1:]
    if not words:
        raise ValueError("no program; say it after --, as in: memlab rehearse -- python train.py")
    first = Path(words[0]).name
    if first == "accelerate" and words[1:2] == ["launch"]:
        found = _accelerate(words[2:])
    elif first == "torchrun":
        found = _torchrun(words[1:])
    elif first == "deepspeed":
        found = _deepspeed(words[1:])
    elif first in ("srun", "mpirun", "mpiexec", "ray"):
        raise ValueError(f"{first} starts processes of its own; rehearse the program: train.py ...")
    elif PYTHON.fullmatch(first):
        found = _python(words[1:])
    else:
        found = _file(words[0], words[1:])
    found.environment = environment | found.environment
    visible = found.environment.get("CUDA_VISIBLE_DEVICES", "0")
    if found.ranks is None:
        found.cards = len([number for number in visible.split(",") if number.strip()])
        if not found.cards:
            raise ValueError("CUDA_VISIBLE_DEVICES names no card; say --backend cpu for none")
    return found


def of_function(function: Callable[..., Any], arguments: list[Any]) -> Program:
    """A function of this process as a program, with the file that it was written in.

    Raises      TypeError for one that is not written in Python
    """
    try:
        path = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:
        path = None
    if path is None:
        name = getattr(function, "__name__", repr(function))
        raise TypeError(f"{name} is not written in Python; a function of yours is needed")
    return Program(path, arguments, function=function)


def _python(words: list[str]) -> Program:
    while words and (FLAGS.fullmatch(words[0]) or words[0][:2] in ("-W", "-X")):
        words = words[2:] if words[0] in ("-W", "-X") else words[1:]
    if words[:1] == ["-m"] and len(words) > 1:
        if words[1] in ("torch.distributed.run", "torch.distributed.launch"):
            return _torchrun(words[2:])
        if words[1] == "accelerate.commands.launch":
            return _accelerate(words[2:])
        return _module(words[1], words[2:])
    if not words or words[0].startswith("-"):
        raise ValueError(f"python {' '.join(words)}: a file or -m MODULE can be rehearsed")
    return _file(words[0], words[1:])


def _file(path: str, arguments: list[str]) -> Program:
    if not os.path.isfile(path):
        raise ValueError(f"no file {path!r}")
    if not path.endswith(".py"):
        raise ValueError(f"{path!r} is no Python program; name the file: train.py")
    return Program(path, arguments)


def _module(name: str, arguments: list[str]) -> Program:
    import sys

    sys.path.insert(0, os.getcwd())  # as python -m does
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError:
        spec = None
    finally:
        sys.path.pop(0)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise ValueError(f"no module {name!r} that python -m could run")
    return Program(spec.origin, arguments, module=name)


def _torchrun(words: list[str]) -> Program:
    from torch.distributed.run import get_args_parser

    said = _parsed(get_args_parser(), words, "torchrun")
    if said.no_python or said.run_path:
        raise ValueError("torchrun --no-python and --run-path run no file that can be rehearsed")
    each, nodes = str(said.nproc_per_node), str(said.nnodes).rpartition(":")[2]
    if not each.isdigit():
        raise ValueError(f"--nproc-per-node {each}: say how many there are")
    arguments = list(said.training_script_args)
    found = (_module if said.module else _file)(said.training_script, arguments)
    found.ranks, found.local = int(each) * int(nodes), int(each)
    return found


def _accelerate(words: list[str]) -> Program:
    """As accelerate 1.15 reads it, with the variables that it would set."""
    try:
        from accelerate.commands.launch import _validate_launch_command, launch_command_parser
        from accelerate.utils.launch import (
            prepare_deepspeed_cmd_env,
            prepare_multi_gpu_env,
            prepare_simple_launcher_cmd_env,
        )
    except ImportError as error:
        raise ValueError(f"accelerate launch needs accelerate: {error}") from error
    said = _parsed(launch_command_parser(), words, "accelerate launch")
    _check(said)
    said, wrote, format_too = _validate_launch_command(said)  # and what `accelerate config` wrote
    _check(said)
    said.num_processes = said.num_processes or 1
    before = dict(os.environ)
    if said.use_deepspeed:
        if importlib.util.find_spec("deepspeed") is None:
            raise ValueError("accelerate launch --use_deepspeed needs DeepSpeed; it is not here")
        fields = [*(wrote.deepspeed_config if wrote else ()), *["mixed_precision"][:format_too]]
        said.deepspeed_fields_from_accelerate_config = ",".join(fields)
        environment = before | prepare_deepspeed_cmd_env(said)[1]
    elif said.use_fsdp:
        environment = before | prepare_multi_gpu_env(said)
    else:
        _, environment = prepare_simple_launcher_cmd_env(said)
    arguments = list(said.training_script_args)
    found = (_module if said.module else _file)(said.training_script, arguments)
    found.environment = {k: v for k, v in environment.items() if before.get(k) != v}
    found.ranks = said.num_processes if said.num_processes > 1 else None
    found.local = said.num_processes // (said.num_machines or 1)
    return found


def _deepspeed(words: list[str]) -> Program:
    """As DeepSpeed 0.19 reads it."""
    from .deepspeed import VARIABLES

    try:
        with patch.dict(os.environ, VARIABLES):  # it looks for a card while it is imported
            from deepspeed.launcher.runner import parse_args
    except ImportError as error:
        raise ValueError(f"deepspeed needs DeepSpeed: {error}") from error
    try:
        with contextlib.redirect_stderr(io.StringIO()) as said_so:
            said = parse_args(words)
    except SystemExit as error:
        raise ValueError(" ".join(said_so.getvalue().split())[-300:]) from error
    if said.no_python or said.autotuning:
        raise ValueError("deepspeed --no_python and --autotuning run no file that can be rehearsed")
    if said.num_gpus < 1 or said.include or said.exclude:
        raise ValueError("deepspeed: say how many cards a machine has: --num_gpus 8")
    found = (_module if said.module else _file)(said.user_script, list(said.user_args))
    found.local, found.numbered = said.num_gpus, not said.no_local_rank
    found.ranks = found.local * max(said.num_nodes, 1)
    return found


def _check(said: Any) -> None:
    for option in ("use_megatron_lm", "tpu"):
        if getattr(said, option, False):
            raise ValueError(f"accelerate launch --{option} is not rehearsed yet")


def _parsed(parser: Any, words: list[str], name: str) -> Any:
    """A launcher's own reading of its options."""

    def error(message: str) -> Any:
        raise ValueError(f"{name}: {message}")

    parser.error = error
    return parser.parse_args(words)
