"""Tied embeddings: what they spare, and the gradient that waits for its second half."""

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

from memlab import Model, Recipe, estimate  # noqa: E402
from memlab.measure import Tracker  # noqa: E402
from memlab.terms.tied import head, spared, waiting  # noqa: E402

V, D = 50, 12


def test_by_hand():
    """GPT-2's table of 50,257 words: 38.6 million parameters less."""
    assert head(50257, d_model=768, tied=False) == 38597376
    assert head(50257, d_model=768, tied=True) == 0
    # Weights and gradients in bf16, two moments in fp32, and the counter of steps.
    assert spared(50257, d_model=768, states="fp32") == 38597376 * (2 + 2 + 8) + 4
    assert waiting(1000) == 8000 and waiting(1000, micro_batches=2, format="bf16") == 6000


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "adamw8bit"])
def test_two_models_differ_by_what_is_spared(optimizer):
    recipe = Recipe(name="bf16", weights="bf16", gradients="bf16", optimizer=optimizer)
    model = Model.preset("tiny-llama").replace(tied=False)
    two, one = (estimate(model.replace(tied=tied), recipe).total() for tied in (False, True))
    assert two - one == spared(model.vocab, d_model=model.d_model, optimizer=optimizer)


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_torch_has_three_tables_at_once_of_which_the_first_sum_becomes_the_gradient(micro_batches):
    table = torch.nn.Parameter(torch.randn(V, D))
    ids = torch.arange(4)

    def backward():
        F.linear(F.embedding(ids, table), table).sum().backward()

    for _ in range(micro_batches - 1):
        backward()
    with Tracker() as tracker:
        backward()
    alive = highest = 0
    for event in tracker.timeline:
        if tuple(tracker.records[event.ident].shape) == (V, D) and event.kind != "seen":
            alive += event.bytes
            highest = max(highest, alive)
    becomes_gradient = table.nbytes if micro_batches == 1 else 0
    assert highest == waiting(V * D, micro_batches=micro_batches) + becomes_gradient


def test_wrong_values():
    with pytest.raises(ValueError, match="micro_batches=0; a step needs at least one"):
        waiting(10, micro_batches=0)
