"""The inverse of the estimate: an answer fits, and the next larger one does not."""

import pytest

from memlab import GiB, Model, Recipe, Sharding
from memlab.changes import ADAPTERS, CHANGES, cheapest_change
from memlab.fit import ON_A_GPU, largest_batch, longest_sequence
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
    at = dict(on="RTX 4090", batch=64, tokens=4096)
    made = cheapest_change(QWEN, "bf16", attention="eager", **at)
    names = [name for name, _, _ in made]
    order = [change.name for change in CHANGES]
    assert [name for name in order if name in names] == names[:-1]
    assert names[-1].endswith("micro-batches")
    peaks = [size for _, _, size in made]
    assert peaks == sorted(peaks, reverse=True)
    limit = largest_batch(QWEN, "bf16", on="RTX 4090", tokens=1024).limit
    assert peaks[-1] <= limit < peaks[-2]


@pytest.mark.parametrize(
    ("model", "recipe", "on", "batch", "tokens"),
    [
        (QWEN, "bf16", "RTX 4090", 8, 1024),
        (QWEN, "fp32", "RTX 3090", 8, 4096),
        (LLAMA, "fp32", "H100", 4, 4096),
        (LLAMA, "bf16", "RTX 4090", 1, 4096),
    ],
)
def test_no_change_is_made_that_is_not_needed(model, recipe, on, batch, tokens):
    made = cheapest_change(model, recipe, on=on, batch=batch, tokens=tokens)
    limit = largest_batch(model, "bf16", on=on, tokens=64).limit
    known = {change.name: change.setting for change in (*CHANGES, ADAPTERS)}
    settings = [known[name] for name, _, _ in made]

    def size(chosen):
        setting = dict(recipe=recipe, batch=batch, tokens=tokens)
        for each in chosen:
            setting |= each
        return peak(model, **setting)

    assert size(settings) == made[-1][2] <= limit
    for i in range(len(settings)):
        assert size(settings[:i] + settings[i + 1 :]) > limit, made[i]


def test_a_change_that_another_replaces_is_not_listed():
    names = [name for name, _, _ in cheapest_change(LLAMA, on="H100", batch=4, tokens=4096)]
    assert "pure bf16" in names and "autocast" not in names


def test_adapters_are_the_last_resort():
    made = cheapest_change(LLAMA, "bf16", on="RTX 4090", batch=1, tokens=4096)
    assert made[-1][0].startswith("LoRA") and "another result" in made[-1][1]


def test_adapters_leave_room_for_micro_batches_to_help():
    made = cheapest_change(LLAMA, "bf16", on="RTX 4090", batch=8, tokens=2048)
    assert made[-2][0].endswith("micro-batches") or made[-1][0].endswith("micro-batches")
    assert any(name.startswith("LoRA") for name, _, _ in made)


def test_micro_batches_pay_for_their_gradients():
    made = cheapest_change(QWEN, "bf16", on="RTX 4090", batch=64, tokens=4096)
    assert [name for name, _, _ in made[:-1]] == ["a loss in chunks", "block checkpointing"]
    parts = int(made[-1][0].split()[0])
    given = dict(checkpoint="block", loss="chunked", **ON_A_GPU)
    sizes = dict(batch=64 // parts, tokens=4096)
    assert made[-1][2] == simulate(QWEN, "bf16", **sizes, **given, micro_batches=parts).peak.bytes


def test_micro_batches_of_a_recipe_are_cut_further():
    at = dict(on="RTX 4090", tokens=4096)
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


def test_a_recipe_for_several_devices_is_refused():
    with pytest.raises(ValueError, match="the step of one device alone"):
        largest_batch(QWEN, Recipe(sharding=Sharding(data=8, zero=3)), on="H100", tokens=64)
