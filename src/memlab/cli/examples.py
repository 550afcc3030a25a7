"""What each command's --help ends with: lines that work as they stand, and the exit status.

A test runs the lines of the commands that need no more than memlab itself.
"""

from __future__ import annotations

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "estimate": (
        ("memlab estimate llama-3-8b --precision bf16", "what stays between two steps"),
        ("memlab estimate gpt2 --batch 2 --tokens 512", "the peak of a training step"),
        (
            "memlab estimate qwen3-0.6b --precision bf16 --phase decode --tokens 8192",
            "what a conversation takes",
        ),
        ("memlab estimate llama-3-8b --recipe zero --ranks 8 --zero 3", "one rank of eight"),
        ("memlab estimate llama-3-8b --fsdp 8 --tokens 4096", "the peak of one, under FSDP2"),
        (
            "memlab estimate llama-3-8b --recipe zero --ranks 8 --zero 2 --tokens 4096",
            "and under DeepSpeed",
        ),
        (
            "memlab estimate llama-3-8b --pipeline 4 --micro-batches 8 --tokens 4096",
            "of each stage of a pipeline",
        ),
        (
            "memlab estimate llama-3-8b --tensor 8 --sequence --tokens 4096",
            "of one of eight that divide each matrix, and the norms by tokens",
        ),
        (
            "memlab estimate qwen3-30b-a3b --fsdp 8 --expert 8 --tokens 4096",
            "of one of eight that have the experts between them",
        ),
    ),
    "rehearse": (
        ("memlab rehearse -- python train.py --epochs 3", "the peak, and its ten lines"),
        ("memlab rehearse --on 'RTX 4090' -- python train.py", "does it fit? if not, where?"),
        ("memlab rehearse --on H100 --json -- torchrun --nproc-per-node 1 train.py", ""),
        ("memlab rehearse --gpus 8 --rank all -- train.py", "each rank; the fullest is told"),
    ),
    "trace": (
        ("memlab trace tiny-llama --tokens 128", "a preset, on tensors without values"),
        ("memlab trace llama-3-8b --precision bf16 --fits 'H100 80GB'", "and on a card"),
        ("memlab trace train.py:build --plot step.svg", "your own module and its inputs"),
    ),
    "fit": (
        ("memlab fit qwen3-0.6b --on 'RTX 4090' --tokens 2048", "the largest batch"),
        ("memlab fit qwen3-0.6b --on '24 GB' --batch 2", "the longest sequence"),
        ("memlab fit gpt2 --on H100 --batch 8 --tokens 1024", "does this step fit?"),
        (
            "memlab fit llama-3-70b --on H100 --batch 1 --tokens 4096 --cards 16",
            "on some of sixteen?",
        ),
        (
            "memlab fit llama-3-8b --on L40S --batch 2 --tokens 4096 --cards 8 --deepspeed",
            "or under DeepSpeed?",
        ),
    ),
    "serve": (
        ("memlab serve llama-3-8b --on H100", "vLLM's pool, and its log"),
        ("memlab serve qwen3-32b --on H100 --quantization fp8 --max-model-len 32768", "in 8 bits"),
        ("memlab serve llama-3-70b --on H100 --tensor-parallel 8", "on each of eight"),
    ),
    "explain": (
        ("memlab explain < train.log", "what an out-of-memory message says"),
        ("memlab explain gpt2 train.log --batch 2 --tokens 512", "and which tensor failed"),
        ("memlab explain gpt2 --seen '4 GiB' --batch 2 --tokens 512", "from a figure"),
        ("memlab explain gpt2 --seen run.json --tokens 512", "from what `memlab watch` wrote"),
        ("memlab explain gpt2 --seen snapshot.pickle --tokens 512", "from PyTorch's snapshot"),
        ("memlab explain llama-3-8b --engine vllm --seen server.log", "from a server's log"),
    ),
    "measure": (
        ("memlab measure tiny-llama", "train it here, and compare"),
        ("memlab measure tiny-gpt --recipe bf16 --steps 5 --json", "for programs"),
    ),
    "watch": (
        (
            "memlab watch --hard-limit 90% --out run.json -- python train.py --epochs 3",
            "its memory in a file, and its end before the machine's",
        ),
    ),
    "record": (
        ("memlab record --list", "what would run"),
        ("memlab record --device cpu --only step --out here.json", "some of it, into a file"),
    ),
    "devices": (("memlab devices", "the cards that --on knows"), ("memlab devices --json", "")),
    "models": (("memlab models", "the presets"), ("memlab models --json", "for programs")),
    "formats": (("memlab formats", "fp32, bf16, nf4 ..."), ("memlab formats --json", "")),
    "recipes": (("memlab recipes", "what --recipe knows"), ("memlab recipes --json", "")),
    "claims": (
        ("memlab claims", "the notes, and how many of their claims hold"),
        ("memlab claims 004", "one note, claim by claim"),
        ("memlab claims --verdict 'unit slip'", "of all notes"),
    ),
    "audit": (
        ("memlab audit --form", "a file to begin with: memlab audit --form > card.md"),
        ("memlab audit card.md", "its claims, each with what memlab answers"),
        ("memlab audit card.md --json", "for programs"),
    ),
    "check": (
        ("memlab check notebooks", "your own, chapter by chapter"),
        ("memlab check 05_activations.ipynb --lang pt-BR", "one, in Portuguese"),
        ("memlab check --class room --out room.html", "a folder a learner"),
        ("memlab check --begin capstone", "the scripts of the capstone's cases"),
        ("memlab check --capstone capstone/capstone_01.py", "one of them, rehearsed and judged"),
    ),
    "doctor": (
        ("memlab doctor", "what is ready, and what to do about the rest"),
        ("memlab doctor --lang zh-TW", "in Chinese"),
    ),
    "schema": (
        ("memlab schema estimate", "of one command"),
        ("memlab schema", "of all of them, and of an error"),
    ),
    "completion": (
        ("memlab completion bash", "what ~/.bashrc shall run: eval it, or add it there"),
        ("memlab completion zsh", "and ~/.zshrc"),
        ("memlab completion fish", "and ~/.config/fish/config.fish"),
    ),
}
STATUS = """\
exit status   0 the answer, or yes; 1 no: it does not fit, a run took other
              bytes than derived, or a claim does not hold; 2 input that makes
              no sense; 70 an error of memlab itself (MEMLAB_DEBUG=1: its
              trace); 130 stopped by Ctrl-C"""
JSON = """\
--json        one object: "memlab" names the command, "schema" the version of
              its fields, every one of which this prints with what it means:
              memlab schema {command}. A refusal is one line on stderr ("error")"""
WIDTH = 80  # columns of a terminal
OWN_STATUS = ("watch",)  # the program's
NO_JSON = ("schema", "completion")
LANGUAGES = """\
help          of a command, -h: the options that most need; --help: all of them,
              as memlab help COMMAND
language      MEMLAB_LANG={languages}, or a LANG that is one of them: tables
              and sentences of answers are in that language. Help, refusals,
              JSON, the lists, and what fit and watch print are English in each
completion    of commands, options, models and cards: memlab completion bash"""


def about_languages() -> str:
    """What all of the help ends with."""
    from ..base.messages import ENGLISH, languages

    others = [code for code in languages() if code != ENGLISH]
    return LANGUAGES.format(languages=" or ".join(others))


def epilog(command: str) -> str:
    """The words below the options of a command."""
    width = max((len(line) for line, _ in EXAMPLES[command]), default=0)
    side = all(width + len(what) + 5 < WIDTH for _, what in EXAMPLES[command])
    lines = [
        f"  {line:{width}}   {what}".rstrip() if side else f"  {line}\n      {what}".rstrip()
        for line, what in EXAMPLES[command]
    ]
    parts = ["\n".join(["examples", *lines])]
    parts += [STATUS] * (command not in OWN_STATUS)
    parts += [JSON.format(command=command)] * (command not in NO_JSON)
    return "\n\n".join(parts)
