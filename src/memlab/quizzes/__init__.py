"""Six questions a chapter: `quiz("weights")` shows them, in a notebook as a widget.

They are data, `memlab/data/quizzes/<label>.toml`, so that page, notebook and printed sheet ask the
same. A file has a table of values and six questions:

    [names]
    llama = "Model.preset('llama-3-8b')"

    [[question]]
    ask = "How many bytes do the weights of Llama-3-8B take in bf16?"
    right = "{text(2 * llama.parameter_count)}"
    because = "Each of {llama.parameter_count} parameters takes two bytes."
    wrong = [["{text(llama.parameter_count)}", "Those are parameters, not bytes."]]
    holds = "llama.parameter_count > 8 * 10**9"

`{...}` is an expression of memlab's own functions (memlab.quizzes.expression); no number is typed
where a function gives it. Each wrong choice has the sentence that names its slip. `holds` is what
must be true for the right choice to be right: a question whose choices are words needs one.
"""

from .questions import Question as Question
from .questions import Quiz as Quiz
from .questions import labels as labels
from .questions import quiz as quiz
from .questions import sentences as sentences
