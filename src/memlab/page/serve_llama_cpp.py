"""What llama.cpp takes of a card: a GGUF file's weights, and the cache of all its slots."""

from __future__ import annotations

from ..base.message import Message
from ..engines.apple import context_of
from ..engines.llama_cpp import loaded
from ..families import has_config
from ..units import text
from ..verdict import Room
from . import llama_cpp_words as told
from . import words as say
from .answer_rows import begun, summed
from .controls import OTHER_MODEL
from .pasted import WITHOUT
from .question import card_of, name_of
from .sentences import known, of_config
from .serve_answer import asked_model, of_type, shown
from .serve_engine import llama_cpp_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .question import State
    from .table_peak import Lookup


def served(state: State, given: State, lookup: Lookup, advise: bool = True) -> dict[str, Any]:
    """The answer, with what llama.cpp allocates before its compute buffer; it advises nothing.

    Raises      as memlab.page.serve_answer.served, and ValueError as
                memlab.engines.llama_cpp.loaded
    """
    config = state["config"] if state["model"] == OTHER_MODEL else {}
    if config and not has_config(config["model_type"]):
        return of_type(state, lookup)
    model = asked_model(state)
    card = card_of(state)
    there = loaded(model, llama_cpp_of(state), on=card)
    beside = context_of(card)
    room = Room(card.name, card.limit, beside)
    found = begun(state, room, name_of(state, model), model.parameter_count)
    found["without"] = config.get(WITHOUT, "")
    figures = {row.term: row.derived or 0 for row in there.ledger.rows}
    kept = Message(told.SLOTS_KEPT, cache=state["gguf_kv"], users=f"{state['users']:,}")
    file = Message(told.FILE_KEPT, file=state["gguf"])
    rows: dict[str, Any] = {"weights": (figures["weights"], file)}
    rows["KV cache"] = (figures["kv_cache"], kept)
    summed(found, rows, room)
    left = max(0, there.available)
    shown(found, state, there.most, there.most * state["context"], left)
    found["verdict"] = known(found)
    line = say.SCALE if beside else told.OF_METAL
    found["scale"] = Message(line, limit=found["limit_text"], card=found["card"])
    host = Message(told.ON_THE_CPU, size=text(there.host))
    more = Message(told.OF_CUDA, size=text(beside)) if beside else told.MORE_OF_METAL
    found["leaves_out"] = [told.COMPUTE_BUFFER, host, told.IMATRIX, more]
    if config:
        found["leaves_out"] += of_config(config, given["config"])
    return found
