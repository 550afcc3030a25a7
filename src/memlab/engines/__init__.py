"""Serving engines: what vLLM or SGLang leaves for its KV cache on a card, and who fits into it.

An engine takes a share of the card when it starts. From that it takes the weights and what a first
step on empty tokens needs at its highest moment; the rest it cuts into blocks at once. The formulas
are those of memlab.terms.engine_pool; here they meet a model and a card.
"""

from .engine import Engine as Engine
from .pool import Pool as Pool
from .pool import pool as pool
from .quantized import Quantized as Quantized
from .quantized import checkpoint as checkpoint
from .start_up import start_up as start_up
