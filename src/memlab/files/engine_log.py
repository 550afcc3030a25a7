"""The start-up log of vLLM or SGLang, in whatever it was pasted with: its own rows and refusal."""

from __future__ import annotations

import re
from itertools import islice

from ..base.frozen import dataclass
from ..units import GiB, KiB, MiB
from .engine_lines import FORMS, FRAMES, OLD, PASSED, REFUSALS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ENDS = 2**20  # characters that are read of each end of a longer text: a server goes on for weeks
UNITS = {"K": KiB, "M": MiB, "G": GiB, "T": 1024 * GiB}
COLOURS = re.compile(r"\x1b\[[\d;?]{0,32}[A-Za-z]")
# Of which rank a line is: (Worker_TP1 pid=7), [2026-01-01 00:00:00 TP1], (VllmWorker rank=1 pid=7).
RANK = re.compile(r"(?<![A-Za-z])(?:TP|rank=)(\d{1,4})(?!\d)|VllmWorkerProcess pid=(\d{1,9})")
MOST = 1000  # lines of one form, and more ranks than anybody has; of start-ups the last twenty
STARTS = re.compile(r"vLLM API server version|server_args=ServerArgs\(")
VERSION = re.compile(
    r"(?:vLLM API server version|LLM engine \(|\bvllm==|\bsglang==|SGLang version:)\s{0,4}v?"
    r"(\d{1,4}\.\d{1,4}[\w.+-]{0,60})"
)
ENGINE_OF_PATH = re.compile(r"\b(vllm|sglang)[/\\](?:\w|srt)")
# An option and its value: of a command line, of `args: Namespace(...)`, `non-default args: {...}`,
# `with config: ...` and `server_args=ServerArgs(...)`. Its name: what it is called here.
NAMES = {
    "gpu_memory_utilization": "utilization",
    "mem_fraction_static": "utilization",
    "max_model_len": "max_model_len",
    "max_seq_len": "max_model_len",
    "context_length": "max_model_len",
    "tensor_parallel_size": "tensor",
    "tp_size": "tensor",
    "max_num_seqs": "seqs",
    "max_num_batched_tokens": "batched",
    "block_size": "block_size",
    "kv_cache_dtype": "kv_dtype",
    "dtype": "dtype",
    "quantization": "quantization",
}
OPTION = re.compile(
    rf"(?<![\w`])((?<=-)tp|{'|'.join(NAMES).replace('_', '[-_]')})"
    r"['\"]?(?:\s{0,2}[=:]\s{0,2}|\s{1,2})['\"]?([\w.]{1,40})"
)
MODEL = re.compile(
    r"(?:\bmodel(?:_path|_tag)?['\"]?\s?[=:]\s?['\"]|--model(?:-path)?[ =]|\bvllm serve )"
    r"([\w./\\@:-]{1,200})"
)
DTYPES = {"bfloat16": "bf16", "half": "fp16", "float16": "fp16", "float": "fp32"}
DTYPES |= {"float32": "fp32"}
SHARES, WORDS = ("utilization",), ("kv_dtype", "dtype", "quantization")


@dataclass(frozen=True, kw_only=True)
class EngineLog:
    """What one start-up says of memory, of one rank.

    engine      vllm or sglang
    version     as the log names it; None: it does not
    v0          whether it is vLLM's first engine, whose wordings and first step were others
    rank        whose figures they are: of several the one with the smallest pool
    ranks       how many the log names, at least
    model       as the log calls it; None: it does not
    figures     bytes, or numbers, by name: weights, activations, non_torch, consumed (weights and
                non_torch), graphs, reserved_graphs (in the share), share, total, unused, free,
                available, blocks, tokens, concurrency, longest, utilization, asked ...
    rounding    to how much each of them is known: the unit of its last digit
    decimal     whether sizes were called GB: both engines count GiB
    options     how it was started: utilization, max_model_len, tensor, seqs, batched, block_size,
                kv_dtype, dtype, quantization, as far as the log says so
    refused     what was being done when memory ran out: engine_lines.MOMENTS; None: nothing was
                refused
    """

    engine: str
    version: str | None
    v0: bool
    rank: int
    ranks: int
    model: str | None
    figures: dict[str, int | float]
    rounding: dict[str, int | float]
    decimal: bool
    options: dict[str, Any]
    refused: str | None

    def before(self, *version: int) -> bool:
        """Whether the version that the log names is earlier; an unnamed one never is."""
        numbers = re.findall(r"\d{1,4}", self.version or "")[: len(version)]
        return bool(numbers) and tuple(map(int, numbers)) < version


def read(text: str) -> EngineLog | None:
    """The last start-up in a text that says something about memory; None where there is none.

    Unit        bytes; both engines divide by 1024 ** 3, whether they call it GiB or GB
    Source      engine_lines: the wordings of vLLM since 0.4 and of SGLang since 0.3
    Leaves out  the middle of a text of more than 2 MiB; pipelines, whose ranks differ
    """
    if len(text) > 2 * ENDS:
        text = text[:ENDS] + "\n" + text[-ENDS:]
    text = COLOURS.sub("", text)
    starts = [0, *(found.start() for found in STARTS.finditer(text))][-20:]
    for i in reversed(range(len(starts))):
        end = starts[i + 1] if i + 1 < len(starts) else len(text)
        found = _read(text[starts[i] : end], text)
        if found is not None:
            return found
    return None


def _read(part: str, text: str) -> EngineLog | None:
    by_rank: dict[int | None, dict[str, tuple[float, float]]] = {}
    engines, decimal, others = [], False, set()  # V0's other workers, which have no number
    for engine, name, value, unit, rank in _figures(part):
        if rank is not None and rank < 0:
            others.add(rank)
            continue
        engines += [engine] if engine else []
        decimal |= unit[1:] == "B" if unit else False
        known = by_rank.setdefault(rank, {})
        if name not in known or value[1] < known[name][1]:  # what is printed to more digits
            known[name] = value
    refused = next(((e, m) for e, m, form in REFUSALS if form.search(part)), None)
    paths = ENGINE_OF_PATH.findall(part)
    if refused and (refused[0] or paths):
        engines.append(refused[0] or max(paths, key=paths.count))
    if not engines:
        return None
    engine = max(engines, key=engines.count)
    common, whole = by_rank.pop(None, {}), {}
    for number, known in by_rank.items() or [(0, {})]:
        whole[number or 0] = _complete(common | known)
    rank = min(whole, key=lambda each: (*_room(whole[each]), each))
    figures = {name: value for name, (value, _) in whole[rank].items()}
    rounding = {name: unit for name, (_, unit) in whole[rank].items()}
    version, model = VERSION.search(part) or VERSION.search(text), MODEL.search(part)
    return EngineLog(
        engine=engine,
        version=version[1].rstrip(".") if version else None,
        v0=engine == "vllm" and ("V0 LLM engine" in part or any(form.search(part) for form in OLD)),
        rank=rank,
        ranks=max(1, len(by_rank)) + len(others),
        model=model[1] if model else None,
        figures=figures,
        rounding=rounding,
        decimal=decimal,
        options=_options(part, figures),
        refused=_moment(refused[1], part, figures) if refused else None,
    )


def _figures(text: str) -> Iterator[tuple[str, str, tuple[float, float], str, int | None]]:
    """Engine, name, value and the unit of its last digit, unit of size, rank: of every place."""
    for engine, forms in FORMS.items():
        for form in forms:
            for found in islice(form.finditer(text), MOST):
                rank = _rank(text, found.start())
                for name, told in found.groupdict().items():
                    if name.endswith("_unit"):
                        continue
                    usual = "GiB" if name == "unused" else ""  # of a pair that has its unit once
                    unit = found.groupdict().get(f"{name}_unit") or usual
                    yield engine, name, _value(told, unit), unit, rank


def _rank(text: str, end: int) -> int | None:
    """The rank that a line names before a place; below 0: one without a number; None: none."""
    begin = max(text.rfind("\n", 0, end) + 1, end - 200)
    found = RANK.findall(text[begin:end])
    if not found:
        return None
    number, process = found[-1]  # of lines that were joined, its own
    return int(number) if number else -1 - int(process)


def _value(told: str, unit: str) -> tuple[float, float]:
    digits = told.replace(",", "")
    places = len(digits.partition(".")[2])
    if not unit:
        return (float(digits), 10**-places) if places else (int(digits), 1)
    size = UNITS[unit[0]]
    return round(float(digits) * size), size / 10**places


def _room(known: dict[str, tuple[float, float]]) -> tuple[float, float]:
    """What orders ranks: that with the smallest pool comes first, then that with most weights."""
    return known.get("available", (2**80, 0))[0], -known.get("weights", (0, 0))[0]


def _complete(known: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """And what follows from two figures that the log has: the sum of a pool, a part of a sum."""
    for name, plus, minus in (
        ("available", ("keys", "values"), ()),
        ("weights", ("before",), ("left",)),
        ("activations", ("torch",), ("weights",)),
        ("non_torch", ("consumed",), ("weights",)),
    ):
        parts = (*plus, *minus)
        if name not in known and all(part in known for part in parts):
            value = sum(known[part][0] for part in plus) - sum(known[part][0] for part in minus)
            known[name] = value, sum(known[part][1] for part in parts)
    return known


def _options(text: str, figures: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, told in OPTION.findall(text):
        field = NAMES.get(name.replace("-", "_"), "tensor")  # -tp, --tp
        value = _option(field, told)
        if value is not None:
            found.setdefault(field, value)
    for name, field in (("utilization", "utilization"), ("longest", "max_model_len")):
        if name in figures:
            found.setdefault(field, figures[name])
    if "seqs" in figures:
        found.setdefault("seqs", figures["seqs"])
    return found


def _option(field: str, told: str) -> Any:
    """The value of an option; None for a default that the engine fills in, and for prose."""
    if field in WORDS:
        word = told.removeprefix("torch.").lower()
        if field == "dtype":
            return DTYPES.get(word)
        return None if word in ("none", "auto", "method", "dtype") else DTYPES.get(word, word)
    if field in SHARES:
        good = re.fullmatch(r"[01]?\.\d{1,6}|1(?:\.0{1,6})?", told)
        return float(told) if good else None
    return int(told) if re.fullmatch(r"\d{1,9}", told) and int(told) else None


def _moment(moment: str, text: str, figures: dict[str, Any]) -> str:
    """What was being done: as the refusal says, else its traceback, else by what was over."""
    if moment:
        return moment
    for frame, meant in FRAMES:
        if f"in {frame}" in text or f".{frame}(" in text:
            return meant
    return next((meant for name, meant in PASSED if name in figures), "weights")
