"""NanoChat: the public program's counts, its optimizer's states, and what three programs keep."""

import pytest
import torch

from memlab.cases.nanochat import D26, NanoChat, Shape, within
from memlab.cases.nanochat_groups import MuonAdamW, groups, state_bytes
from memlab.cases.nanochat_step import compiled, kept, logits_peak, on_meta, to_fp8
from memlab.cases.partition import cut
from memlab.lab.text import batches
from memlab.lab.train import one_thread
from memlab.measure import Saved, storage_bytes, trace

SMALL = Shape(depth=4, width=128, heads=4, vocab=256, tokens=64)
IDS = torch.zeros(2, 64, dtype=torch.long)


def counts(net):
    return {name: sum(p.numel() for p in of) for name, of in groups(net).items()}


def test_the_groups_are_those_that_nanochat_prints_for_depth_26():
    assert counts(on_meta()) == {
        "transformer_matrices": 863_900_960,  # 26 · 12 · 1,664² and 13 gates of 32 · 13
        "lm_head": 54_525_952,
        "wte": 54_525_952,
        "value_embeds": 708_837_376,
        "scalars": 52,
    }


def test_every_parameter_is_in_one_group():
    net = on_meta()
    of = [p for params in groups(net).values() for p in params]
    assert len(of) == len(set(of)) == len(list(net.parameters()))


def test_windows_and_tables_alternate_as_in_nanochat():
    assert [D26.window(i) // 1024 for i in range(8)] == [1, 1, 1, 2, 1, 1, 1, 2]
    assert D26.window(25) == 2048  # the last layer is an S of the pattern, and sees everything
    assert [i for i in range(26) if D26.has_values(i)] == list(range(1, 26, 2))


def test_a_window_looks_back_and_not_ahead():
    seen = within(2, 5, torch.device("cpu"))
    assert seen.sum(1).tolist() == [1, 2, 3, 3, 3]
    assert not seen.triu(1).any()


def test_states_are_what_the_optimizer_makes():
    torch.manual_seed(0)
    net = NanoChat(SMALL)
    optimizer = MuonAdamW(groups(net))
    (ids,) = batches(2, 65, steps=1)
    net(ids[:, :-1], ids[:, 1:]).backward()
    optimizer.step()
    for name, of in groups(net).items():
        made = [x for p in of for x in optimizer.state[p].values() if torch.is_tensor(x)]
        assert sum(map(storage_bytes, made)) == state_bytes(net)[name]


def test_states_are_divided_as_the_distributed_optimizer_divides_them():
    net = on_meta()
    eight = state_bytes(net, 8)
    assert eight["lm_head"] * 8 == state_bytes(net)["lm_head"]
    assert eight["scalars"] == state_bytes(net)["scalars"]
    # 104 squares fill 8 GPUs; 26 tall, 26 wide ones and 13 gates are padded to 4, 4 and 2 each
    D = 1664
    matrices = 13 * (D * D + D) + 2 * 4 * (4 * D * D + 4 * D) + 2 * (32 * 13 + 32)
    assert eight["transformer_matrices"] == 4 * matrices
    with pytest.raises(ValueError, match="gpus=3; a divisor of the 32,768 rows is needed"):
        state_bytes(net, 3)


def test_it_learns_in_both_formats():
    losses = {}
    for fp8 in (False, True):
        torch.manual_seed(0)
        net = NanoChat(SMALL)
        if fp8:
            to_fp8(net)
        optimizer = MuonAdamW(groups(net))
        with one_thread():
            for ids in batches(8, 65, steps=6):
                loss = net(ids[:, :-1], ids[:, 1:])
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        losses[fp8] = loss.item()
    assert losses[False] < 3.5  # from ln 256 = 5.5
    assert abs(losses[True] / losses[False] - 1) < 0.1


def test_to_fp8_leaves_gates_and_tables_and_keeps_weights_wide():
    net = on_meta(fp8=True)
    kinds = [type(m).__name__ for m in net.modules()]
    assert kinds.count("Float8Linear") == 26 * 6 + 1
    assert kinds.count("Linear") == 13
    assert net.lm_head.weight.dtype == torch.float32


@pytest.mark.parametrize("shape", [SMALL, Shape(depth=2, tokens=64)])
def test_the_closed_form_is_what_the_plain_program_keeps(shape):
    ids = torch.zeros(2, shape.tokens, dtype=torch.long)
    rows = trace(on_meta(shape), (ids, ids), optimizer=None, steps=1).rows
    assert rows["activations"] + rows["logits"] == sum(kept(shape, 2).values())


def test_four_copies_of_the_logits_are_the_peak_at_full_size():
    ids = torch.zeros(16, 2048, dtype=torch.long)
    found = trace(on_meta(), (ids, ids), optimizer=None, steps=1)
    assert found.op == "_log_softmax_backward_data"
    peak = found.contents("peak")
    assert peak["activations"] == kept(D26, 16)["activations"]
    assert peak["logits"] == logits_peak(D26, 16)


def test_a_mask_is_kept_and_a_number_is_not():
    sizes = {}
    for flash in (False, True):
        net = NanoChat(SMALL, flash=flash)
        with Saved(exclude=net) as saved:
            net(IDS, IDS)
        sizes[flash] = saved.bytes
    assert sizes[False] - sizes[True] == 3 * 64 * 64 * 2  # layers 0 to 2, additive, in bf16


def test_torchao_keeps_no_less_without_a_compiler():
    sizes = {}
    for fp8 in (False, True):
        net = on_meta(SMALL, fp8=fp8)
        sizes[fp8] = trace(net, (IDS, IDS), optimizer=None, steps=1).rows
    inside = sum(m.weight.numel() for m in net.modules() if type(m).__name__ == "Float8Linear")
    # Only the bf16 copies of the weights are gone: they are cast from fp32 to FP8 at once.
    plain, converted = (rows["activations"] + rows["logits"] for rows in sizes.values())
    assert plain - converted == 2 * inside


def test_pairs_of_layers_add_up():
    eight = Shape(depth=8, width=128, heads=4, vocab=256, tokens=64)
    assert compiled(2, shape=eight) == cut(on_meta(eight), IDS, IDS).bytes
    with pytest.raises(ValueError, match="depth=5 is odd"):
        compiled(2, shape=Shape(depth=5))


def test_a_cut_counts_each_storage_once_and_no_weight():
    x = torch.randn(8, 4)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Tanh())
    loss = torch.nn.Sequential(net, _Sum())
    found = cut(loss, x)
    assert found.bytes == 8 * 4 * 4  # tanh keeps its result; the product needs input and weight
    assert found.of_dtype("float32") == found.bytes
    assert found.of_dtype("bfloat16") == 0


def test_a_view_of_a_weight_is_no_memory_of_its_own():
    wide = torch.nn.Linear(4, 4, bias=False)
    net = torch.nn.Sequential(wide, torch.nn.Tanh(), torch.nn.Linear(4, 4, bias=False), _Sum())
    for dtype, each in ((torch.float32, 4), (torch.bfloat16, 2)):
        found = cut(net.to(dtype), torch.randn(8, 4, dtype=dtype))
        # The second weight crosses transposed, a view; tanh's result is all that was made.
        assert found.bytes == 8 * 4 * each, list(found.rows)


class _Sum(torch.nn.Module):
    def forward(self, x):
        return x.sum()
