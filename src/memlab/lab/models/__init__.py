"""Two decoders, one file each: `gpt` reads like GPT-2, `llama` like what came after it."""

from .gpt import TinyGPT as TinyGPT
from .llama import TinyLlama as TinyLlama
