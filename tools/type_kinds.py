"""What kind of model each type of the installed transformers is, for memlab.model.type_kinds.

    python tools/type_kinds.py          print how many types there are of each kind
    python tools/type_kinds.py --write  into src/memlab/model/type_kinds.py

Asked are the tables by which transformers finds a class for a task (models/auto/modeling_auto.py),
and each configuration class with its own values. A type that predicts the next token, or has a part
that does, is of none of these kinds and is left out.
"""

import argparse
import contextlib
import io
import logging
import re
import textwrap
from pathlib import Path
from typing import Any

from memlab.model import type_kinds

OUT = Path(type_kinds.__file__)
LANGUAGE = ("CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM")
SEQUENCES = ("SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ")
# A kind, and the tasks that only such a model has: the first that a type has decides.
TASKS = (
    (type_kinds.RETRIEVAL, ("RETRIEVAL",)),
    (type_kinds.ENCODER, ("MASKED_LM", "TEXT_ENCODING", "NEXT_SENTENCE_PREDICTION")),
    (type_kinds.ENCODER, ("MULTIPLE_CHOICE", "QUESTION_ANSWERING", "TABLE_QUESTION_ANSWERING")),
    (
        type_kinds.AUDIO,
        ("AUDIO_CLASSIFICATION", "AUDIO_FRAME_CLASSIFICATION", "AUDIO_XVECTOR", "CTC", "RNNT")
        + ("TDT", "TEXT_TO_SPECTROGRAM", "TEXT_TO_WAVEFORM", "AUDIO_TOKENIZATION"),
    ),
    (
        type_kinds.SERIES,
        ("TIME_SERIES_CLASSIFICATION", "TIME_SERIES_PREDICTION", "TIME_SERIES_REGRESSION"),
    ),
    (type_kinds.PAIR, ("ZERO_SHOT_IMAGE_CLASSIFICATION",)),
    (
        type_kinds.VISION,
        ("BACKBONE", "IMAGE_CLASSIFICATION", "IMAGE_SEGMENTATION", "IMAGE_TO_IMAGE")
        + ("OBJECT_DETECTION", "SEMANTIC_SEGMENTATION", "UNIVERSAL_SEGMENTATION")
        + ("INSTANCE_SEGMENTATION", "MASK_GENERATION", "MASKED_IMAGE_MODELING")
        + ("DEPTH_ESTIMATION", "NORMAL_ESTIMATION", "POINTMAP_ESTIMATION", "POSE_ESTIMATION")
        + ("KEYPOINT_DETECTION", "KEYPOINT_MATCHING", "VIDEO_CLASSIFICATION", "IMAGE_MATTING")
        + ("CAUSAL_IMAGE_MODELING", "TABLE_RECOGNITION", "TEXT_RECOGNITION")
        + ("VISUAL_QUESTION_ANSWERING", "DOCUMENT_QUESTION_ANSWERING")
        + ("ZERO_SHOT_OBJECT_DETECTION", "IMAGE"),
    ),
)
TOWERS = ("vision_config", "image_config", "audio_config", "video_config", "audio_video_config")


def kinds() -> dict[str, str]:
    """{model_type: its kind} of every type of another kind than memlab's."""
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    logging.disable(logging.CRITICAL)
    tasks = _tasks()
    settings: dict[str, Any] = {}
    for name in CONFIG_MAPPING_NAMES:
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                settings[name] = transformers.CONFIG_MAPPING[name]()
        except Exception:  # some classes refuse their own defaults, each with an error of its own
            settings[name] = None
    inside = {sub.model_type for whole in settings.values() for sub in _parts(whole)}
    made = {}
    for name in sorted(CONFIG_MAPPING_NAMES):
        kind = _kind(tasks.get(name, set()), settings[name], name in inside)
        if kind:
            made[name] = kind
    return made


def _tasks() -> dict[str, set[str]]:
    """{model_type: the tasks that transformers has a class of it for}."""
    from transformers.models.auto import modeling_auto

    made: dict[str, set[str]] = {}
    for table, names in vars(modeling_auto).items():
        if found := re.fullmatch(r"MODEL_FOR_(\w+)_MAPPING_NAMES", table):
            for name in names:
                made.setdefault(name, set()).add(found[1])
    return made


def _parts(whole: Any) -> list[Any]:
    """The configurations inside one."""
    if whole is None:
        return []
    found = [getattr(whole, key, None) for key in type(whole).sub_configs]
    return [each for each in found if getattr(each, "model_type", "")]


def _kind(tasks: set[str], settings: Any, inside: bool) -> str:
    """The kind of a type with these tasks; nothing for one that predicts the next token."""
    if getattr(settings, "is_encoder_decoder", False):
        return type_kinds.ENCODER_DECODER
    if "CAUSAL_LM" in tasks:
        masked = "MASKED_LM" in tasks and getattr(settings, "is_decoder", None) is False
        return type_kinds.ENCODER if masked else ""
    if tasks & {*LANGUAGE}:
        return ""
    if tasks & {*SEQUENCES}:
        return "" if getattr(settings, "text_config", None) else type_kinds.ENCODER_DECODER
    if inside and tasks & {"TEXT_ENCODING"} and "MASKED_LM" not in tasks:
        return type_kinds.PART
    for kind, names in TASKS:
        if tasks & {*names}:
            return kind
    subs = getattr(type(settings), "sub_configs", {})
    told = [key for key in subs if getattr(settings, key) is not None]
    if len(told) == 2 and "text_config" in told and {*told} & {*TOWERS}:
        return type_kinds.PAIR
    return type_kinds.PART if inside else type_kinds.OTHER


def written(found: dict[str, str]) -> str:
    """The module with its table anew."""
    text = OUT.read_text(encoding="utf-8")
    head, _, _ = text.partition(type_kinds.MARK)
    rows = []
    for kind in type_kinds.KINDS:
        names = " ".join(sorted(name for name, each in found.items() if each == kind))
        lines = textwrap.wrap(names, 93, break_long_words=False, break_on_hyphens=False)
        rows.append(f'    "{kind}": """')
        rows += [f"    {line}" for line in lines]
        rows.append('    """,')
    return f"{head}{type_kinds.MARK}\n" + "\n".join(["TYPES = {", *rows, "}", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"into {OUT.name}")
    options = parser.parse_args()
    found = kinds()
    for kind in type_kinds.KINDS:
        print(f"{kind:16} {list(found.values()).count(kind)}")
    if options.write:
        OUT.write_text(written(found), encoding="utf-8")


if __name__ == "__main__":
    main()
