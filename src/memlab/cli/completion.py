"""`memlab completion bash`: what makes a shell complete commands, options and their values.

The script asks memlab again at each Tab, with the words so far: the parsers of the version that is
installed say themselves what they take.
"""

from __future__ import annotations

import argparse

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterable

# What each shell runs at a Tab. The last word is the one that is being typed, empty or not. Where
# nothing is known, a shell completes files.
SCRIPTS = {
    "bash": """\
_memlab() {
    local IFS=$'\\n' word
    COMPREPLY=()
    for word in $(memlab completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
        COMPREPLY+=("$(printf %q "$word")")
    done
}
complete -o default -F _memlab memlab""",
    "zsh": """\
_memlab() {
    local -a found
    found=("${(@f)$(memlab completion zsh -- "${(@Q)words[2,CURRENT-1]}" \
        "$PREFIX" 2>/dev/null)}")
    [[ -n $found ]] && compadd -- $found || _files
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _memlab memlab""",
    "fish": """\
complete -c memlab -a '(memlab completion fish -- \
(commandline -opc)[2..] (string unescape -- (commandline -ct)) 2>/dev/null)'""",
}
CARDS = ("on", "fits")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A shell; and for its script the words that were typed."""
    parser.add_argument("shell", choices=SCRIPTS, metavar="SHELL", help=", ".join(SCRIPTS))
    words = "the words of a line, the last one unfinished: what may stand in its place"
    parser.add_argument("words", nargs="*", metavar="WORD", help=words)


def run(options: argparse.Namespace) -> str:
    """What the command prints: the script, or what completes the last of some words."""
    script, words = SCRIPTS[options.shell], options.words
    if not words:
        return script
    return "\n".join(known for known in candidates(words[:-1]) if known.startswith(words[-1]))


def candidates(before: list[str]) -> Iterable[str]:
    """What may come after these words; nothing where it is a file, or anything."""
    from . import COMMANDS, parser

    if before in ([], ["help"]):
        return (*COMMANDS, *(["help"] if not before else ()))
    of = parser(before[0]).of
    if of is None or "--" in before:
        return ()
    action = of._option_string_actions.get(before[-1])
    if action is not None and action.nargs != 0:
        return map(str, action.choices or _named(action.dest))
    first = next((each for each in of._actions if not each.option_strings), None)
    if first is not None and len(before) == 1 and (found := first.choices or _named(first.dest)):
        return (*map(str, found), "--help")
    return sorted(flag for flag in of._option_string_actions if flag not in before)


def _named(dest: str) -> Iterable[str]:
    """The names that an option or an argument takes beside others: models, cards, recipes."""
    if dest == "model":
        from ..model import presets

        return presets()
    if dest in CARDS:
        from ..devices import devices

        return (device.name for device in devices())
    if dest == "recipe":
        from ..recipe import recipes

        return recipes()
    if dest == "optimizer":
        from ..terms.optimizer import OPTIMIZERS

        return OPTIMIZERS
    return ()
