"""What memlab.lab.shard cuts up, run: on real ranks over gloo, and on one fake rank of many."""

import pytest
import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import unset_fake_temporarily

from memlab import Model, Recipe, Run, Sharding, estimate
from memlab.lab import ranks, shard, sharded, text
from memlab.lab.models import TinyLlama
from memlab.lab.ranks import fake_ranks, on_ranks
from memlab.measure import resident
from memlab.terms.sharded_step import layer_activations
from memlab.terms.sharding import whole_tensors

TINY = Model.preset("tiny-llama")
LLAMA = Model.preset("llama-3-8b")


def over(**ranks):
    return Run(devices=Sharding.of(**ranks))


def alone(model):
    """The losses of one device, which reads the whole batch."""
    torch.manual_seed(0)
    net, losses = TinyLlama(model), []
    optimizer = sharded.adamw(net.parameters())
    for ids in text.batches(sharded.BATCH, sharded.TOKENS, steps=sharded.STEPS):
        optimizer.zero_grad()
        loss = net(ids, ids)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_two_real_ranks_hold_what_is_derived_and_learn_what_one_would():
    expected = alone(TINY)
    found = on_ranks(2, sharded.train_stages, TINY, (0, 1, 2, 3))
    for own in found:
        for stage, (ledger, losses) in own.items():
            derived = estimate(TINY, "fp32", over(data=2, zero=stage))
            assert [r.measured for r in ledger.rows] == [r.derived for r in derived.rows], stage
            assert losses == pytest.approx(expected, rel=1e-5)


def zero_redundancy(model):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    net = TinyLlama(model)
    optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    ids = next(text.batches(1, 16, steps=1))
    net(ids, ids).backward()
    optimizer.step()
    return resident(net, optimizer.optim)["optimizer"], shards(model)


def shards(model):
    """Padding: three ranks do not divide 128 rows; the last has fewer, and stores as many."""
    net = shard.fsdp(TinyLlama(model))
    held = resident(net, sharded.adamw(net.parameters()))
    return held["weights"], [p.to_local().shape[0] for p in net.parameters()][0]


def test_three_real_ranks_pad_and_deal_out_whole_tensors():
    counts = [t.numel for t in TINY.tensors() for _ in range(t.copies)]
    found = on_ranks(3, zero_redundancy, TINY)
    assert sorted(f[0] for f in found) == sorted(4 * n for n in whole_tensors(counts, ranks=3))
    derived = estimate(TINY, "fp32", over(data=3, zero=3))["weights"].derived
    assert [weights for _, (weights, _) in found] == [derived] * 3
    assert [rows for _, (_, rows) in found] == [86, 86, 84]  # of 256


def fails():
    if dist.get_rank() == 1:
        raise ValueError("rank 1 has had enough")
    dist.barrier()


def test_a_rank_that_fails_says_why_and_leaves_no_process():
    with pytest.raises(RuntimeError, match="rank 1 has had enough"):
        on_ranks(2, fails)


def test_ranks_that_are_no_copies_of_one_process_do_the_same(monkeypatch):
    monkeypatch.setattr(ranks, "COPIES", False)
    assert on_ranks(2, sum_of_ranks) == [[1, 2], [2, 2]]
    monkeypatch.setattr(ranks, "COPIES", True)
    assert on_ranks(2, sum_of_ranks) == [[1, 2], [2, 2]]


def sum_of_ranks():
    """Its own number from 1 on, and how many there are."""
    one = torch.ones(1)
    dist.all_reduce(one)
    return [dist.get_rank() + 1, int(one)]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("layers", "ranks", "tokens"),
    [
        (2, 8, 512),
        (2, 1024, 8192),
        pytest.param(1, 4096, 8192, marks=pytest.mark.deep),
        (3, 64, 64),
    ],
)
def test_the_peak_of_fsdp_is_derived_to_the_byte(layers, ranks, tokens):
    model = LLAMA.replace(layers=layers)
    held, peak = sharded.trace_fsdp(model, ranks, tokens)
    derived = estimate(model, "fp32", over(data=ranks, zero=3))
    assert [r.traced for r in held.rows] == [r.derived for r in derived.rows]
    found = sharded.moments(model, ranks, tokens).values()
    assert max(sum(each.values()) for each in found) == peak.total("traced")


def test_more_tokens_than_positions_are_refused():
    with pytest.raises(ValueError, match="tokens=16384 is more than the 8192"):
        sharded.moments(LLAMA, 8, 16384)


@pytest.mark.deep
def test_all_layers_of_llama_3_8b_at_64_ranks():
    """What the chapter derives from the layers that it traces, with none left out."""
    held, peak = sharded.trace_fsdp(LLAMA, 64, 8192)
    derived = estimate(LLAMA, "fp32", over(data=64, zero=3))
    assert [r.traced for r in held.rows] == [r.derived for r in derived.rows]
    assert peak.total("traced") == sum(sharded.moments(LLAMA, 64, 8192)["loss"].values())


@pytest.mark.parametrize("ranks", [2, 4])
def test_tensor_parallel_layers_keep_what_is_derived(ranks):
    model = TINY.replace(kv_heads=4)
    kept = sharded.saved_by_layer(model, shard.tensor_parallel, ranks, 2, 64)
    assert kept == layer_activations(
        2,
        tokens=64,
        d_model=128,
        d_ff=352,
        heads=4,
        kv_heads=4,
        head_dim=32,
        precision="fp32",
        tensor=ranks,
    )


def test_a_table_cut_by_words_has_a_whole_gradient():
    """DTensor, torch 2.13: the embedding's gradient is replicated; all others are as derived."""
    derived = estimate(TINY, Recipe(optimizer="sgd"), over(tensor=2))
    traced = sharded.trace_tensor_parallel(TINY, 2)
    apart = [t.traced - d.derived for t, d in zip(traced.rows, derived.rows, strict=True)]
    assert apart == [0, 4 * TINY.vocab * TINY.d_model // 2, 0]


def sequence_parallel(net, mesh):
    """Tensor parallelism with the norms' tokens divided as well, in torch's own classes."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        PrepareModuleInput,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    whole, cut = Replicate(), Shard(1)
    plan = {f"attention.{n}": ColwiseParallel() for n in "qkv"}
    plan |= {f"feed_forward.{n}": ColwiseParallel() for n in ("gate", "up")}
    plan |= {n: RowwiseParallel(output_layouts=cut) for n in ("attention.out", "feed_forward.down")}
    plan |= {n: SequenceParallel() for n in ("attention_norm", "feed_forward_norm")}
    for name, more in (("attention", (None, None)), ("feed_forward", ())):
        plan[name] = PrepareModuleInput(
            input_layouts=(cut, *more), desired_input_layouts=(whole, *more)
        )
    for layer in net.layers:
        parallelize_module(layer, mesh, plan)
    ends = {
        "embedding": RowwiseParallel(input_layouts=whole, output_layouts=cut),
        "final_norm": SequenceParallel(),
        "lm_head": ColwiseParallel(input_layouts=cut, use_local_output=False),
    }
    return parallelize_module(net, mesh, ends)


def test_sequence_parallel_layers_keep_what_is_derived():
    kept = sharded.saved_by_layer(TINY, sequence_parallel, 2, 2, 64)
    assert kept == layer_activations(
        2,
        tokens=64,
        d_model=128,
        d_ff=352,
        heads=4,
        kv_heads=2,
        head_dim=32,
        precision="fp32",
        tensor=2,
        sequence=True,
    )


def test_tensor_parallel_and_fsdp_together():
    """First by heads, then by rows: each parameter as `estimate` cuts it."""
    # The two meshes are joined here, which fake tensors cannot do; meta tensors will do as well.
    with fake_ranks(4, 2) as (data, tensor), unset_fake_temporarily(), torch.device("meta"):
        net = shard.tensor_parallel(TinyLlama(TINY), tensor)
        held = resident(shard.fsdp(net, data))
    derived = estimate(TINY, "fp32", over(data=4, tensor=2, zero=3))
    assert held["weights"] == derived["weights"].derived
