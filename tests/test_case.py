"""A case with something turned over: what a change of the recipe must leave as it was."""

from memlab import Model, Run, estimate, explain

TINY = Model.preset("tiny-llama")
RUN = Run.cpu(batch=8, tokens=64, implementation="memlab")


def test_a_checkpoint_keeps_its_format_when_the_recipe_turns_out_to_be_another():
    seen = estimate(TINY, "fp32", RUN).total() + 2 * TINY.parameter_count
    first = explain(TINY, "bf16", RUN, seen=seen, level="tensors").sums[0]
    assert first.names == ("everything in fp32", "the checkpoint's state dict kept")
    assert first.left == 0
