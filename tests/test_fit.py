"""The inverse of the estimate: an answer fits, and the next larger one does not."""

import pytest

from memlab import GiB, Model, Recipe
from memlab.fit import ON_A_GPU, cheapest_change, largest_batch, longest_sequence
from memlab.step import simulate

QWEN, LLAMA = Model.preset("qwen3-0.6b"), Model.preset("llama-3-8b")


def peak(model, recipe, **setting):
    return simulate(model, recipe, **ON_A_GPU, **setting).peak.bytes


@pytest.mark.parametrize("device", ["RTX 4090", "rtx4090", "24 GiB", 24 * GiB])
def test_the_largest_batch_is_the_largest(device):
    fit = largest_batch(QWEN, "bf16", on=device, tokens=1024)
    assert peak(QWEN, "bf16", batch=fit.value, tokens=1024) == fit.peak <= fit.limit
    assert peak(QWEN, "bf16", batch=fit.value + 1, tokens=1024) > fit.limit


def test_the_longest_sequence_is_the_longest():
    fit = longest_sequence(QWEN, "bf16", on="RTX 3090")
    assert peak(QWEN, "bf16", batch=1, tokens=fit.value) == fit.peak <= fit.limit
    assert peak(QWEN, "bf16", batch=1, tokens=fit.value + 1) > fit.limit
    assert "largest sequence on RTX 3090" in str(fit)


def test_positions_bound_a_sequence():
    tiny = Model.preset("tiny-llama")
    longest = longest_sequence(tiny, "bf16", on="H100", implementation="memlab", backend="cpu")
    assert longest.value == tiny.positions


def test_what_is_spared_is_left_free():
    generous = largest_batch(QWEN, "bf16", on="24 GiB", tokens=1024, spare=0)
    careful = largest_batch(QWEN, "bf16", on="24 GiB", tokens=1024, spare=8 * GiB)
    assert generous.limit - careful.limit == 8 * GiB
    assert generous.value > careful.value


def test_nothing_fits_says_by_how_much():
    fit = largest_batch(LLAMA, "bf16", on="RTX 4090", tokens=2048)
    assert fit.value == 0 and fit.peak > fit.limit
    assert "no batch fits RTX 4090: the smallest step is" in str(fit)


def test_changes_come_in_the_order_of_their_cost_and_end_with_one_that_fits():
    at = dict(on="RTX 4090", batch=64, tokens=1024)
    made = cheapest_change(QWEN, "bf16", attention="eager", **at)
    names = [name for name, _, _ in made]
    assert names[0] == "SDPA attention" and names[-1].endswith("micro-batches")
    peaks = [size for _, _, size in made]
    assert peaks == sorted(peaks, reverse=True)
    limit = largest_batch(QWEN, "bf16", on="RTX 4090", tokens=1024).limit
    assert peaks[-1] <= limit < peaks[-2]


def test_micro_batches_pay_for_their_gradients():
    made = cheapest_change(QWEN, "bf16", on="RTX 4090", batch=64, tokens=1024)
    parts = int(made[-1][0].split()[0])
    given = dict(checkpoint="block", backend="cuda", optimizer_impl="fused")
    sizes = dict(batch=64 // parts, tokens=1024)
    alone = simulate(QWEN, "bf16", **sizes, **given).peak.bytes
    assert made[-1][2] == simulate(QWEN, "bf16", **sizes, **given, micro_batches=parts).peak.bytes
    assert alone < made[-1][2] <= alone + 2 * QWEN.parameter_count


def test_micro_batches_of_a_recipe_are_cut_further():
    at = dict(on="RTX 4090", tokens=1024)
    recipe = Recipe.named("bf16").replace(accumulate=4)
    made = cheapest_change(QWEN, recipe, batch=64, **at)
    parts = int(made[-1][0].split()[0])
    assert parts % 4 == 0 and parts > 4


def test_a_step_that_fits_needs_no_change():
    assert cheapest_change(QWEN, "bf16", on="H100", batch=1, tokens=512) == []


def test_wrong_input_fails_by_name():
    with pytest.raises(ValueError, match="llama-3-8b needs .* with every change known here"):
        cheapest_change(LLAMA, "bf16", on="RTX 4060 Laptop", batch=4, tokens=1024)
    with pytest.raises(ValueError, match="RTX 9999"):
        largest_batch(QWEN, "bf16", on="RTX 9999", tokens=64)
    with pytest.raises(ValueError, match="nanochat"):
        largest_batch(Model.preset("nanochat-d26"), "bf16", on="H100", tokens=64)
