"""The book's pictures: small SVGs whose text is text, the same colours for the same terms.

ledger_bar      one bar per column or per ledger, stacked by term
timeline        bytes over one step, stacked by category, the peak marked
address_space   where the allocator puts every block of a trace, over time
bits            which bit of a format says what
curves          one line a run, such as losses beside a baseline's
decision        questions from top to bottom, and what a yes to each leads to
beyond_the_model  what each program's loop holds beside the model's own step
block_tables    which blocks of an engine's pool each sequence has
page_tables     where the pages of a KV cache lie, for several conversations
routing         which token goes to which expert, and back
ratios          what a technique changes, as multiples of what was there before
matrices        the matrices of a layer, to scale
decoder         a network with its letters on it, every matrix by name and shape
saved_layer     a layer's operations, and the tensors that autograd saves for each
logits_in_time  every copy of the logits, from its birth to its end
turns           which micro-batch each rank of a pipeline computes, turn by turn
who_holds       which part of each tensor is in memory, for several ranks and moments
picture         any matplotlib figure, made stable and readable like the others
"""

from .address_space import address_space
from .bar import ledger_bar
from .block_tables import block_tables
from .canvas import Picture
from .colours import COLOURS, colour_of
from .copies import logits_in_time
from .decision import decision
from .decoder import decoder
from .layout import bits
from .lines import curves
from .loops import beyond_the_model
from .matrices import matrices
from .other import picture
from .page_tables import page_tables
from .ratios import ratios
from .routing import routing
from .saved_layer import saved_layer
from .steps import timeline
from .turns import turns
from .who_holds import who_holds

__all__ = [
    "COLOURS",
    "Picture",
    "address_space",
    "beyond_the_model",
    "bits",
    "block_tables",
    "colour_of",
    "curves",
    "decision",
    "decoder",
    "ledger_bar",
    "logits_in_time",
    "matrices",
    "page_tables",
    "picture",
    "ratios",
    "routing",
    "saved_layer",
    "timeline",
    "turns",
    "who_holds",
]
