"""The tracker against two other accounts of the same run, and each thing that could fool it."""

import gc
import subprocess
import sys
import weakref

import pytest

torch = pytest.importorskip("torch")

from small_models import OPTIMIZERS, Llama, Training  # noqa: E402
from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from memlab.measure import CATEGORIES, Tracker, resident, storage_bytes  # noqa: E402

STEPS = 2
# Every family with every format, every optimizer in fp32 and in at least one other.
CONFIGS = [("llama", "fp32", o) for o in OPTIMIZERS] + [
    ("llama", "bf16", "sgd"),
    ("llama", "bf16", "adamw-foreach"),
    ("llama", "bf16", "muon"),
    ("llama", "autocast", "adamw-fused"),
    ("llama", "autocast", "adamw-loop"),
    ("llama", "autocast", "amsgrad"),
    ("gpt", "fp32", "adamw-fused"),
    ("gpt", "fp32", "adafactor"),
    ("gpt", "bf16", "adamw-foreach"),
    ("gpt", "bf16", "muon"),
    ("gpt", "autocast", "adamw-loop"),
    ("conv", "fp32", "sgd"),
    ("conv", "bf16", "adamw-fused"),
    ("conv", "autocast", "adafactor"),
    ("mlp", "fp32", "sgd"),
    ("mlp", "fp32", "adamw-fused"),
    ("mlp", "bf16", "amsgrad"),
    ("mlp", "autocast", "adamw-fused"),
    ("mlp", "autocast", "muon"),
]
# Where the kernel that reaches the peak takes no scratch memory, the profiler says the same peak.
# Elsewhere bf16 matrix products, LayerNorm, convolutions, or scalars inside `div` take some.
NO_SCRATCH = [("llama", "fp32", o) for o in OPTIMIZERS] + [
    ("gpt", "fp32", "adamw-fused"),
    ("gpt", "fp32", "adafactor"),
    ("mlp", "fp32", "sgd"),
    ("mlp", "fp32", "adamw-fused"),
    ("mlp", "autocast", "adamw-fused"),
]


@pytest.fixture(autouse=True)
def one_thread():
    """Scratch memory of kernels grows with the threads; old garbage must not look like a free."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    torch.set_num_threads(before)


def tracked(training):
    figures = []
    with Tracker() as tracker:
        tracker.label([training.model, training.optimizer])
        tracker.label(training.batch, "inputs")
        for _ in range(STEPS):
            tracker.reset_peak()
            training.step()
            figures.append((tracker.peak, tracker.current))
    return figures


def mem_tracked(training):
    from torch.distributed._tools.mem_tracker import MemTracker

    figures, cpu = [], torch.device("cpu")
    other = MemTracker()
    other.track_external(training.model, training.optimizer, *training.batch)
    with other:
        for _ in range(STEPS):
            other.reset_mod_stats()
            other._peak_mem, other._peak_mem_snap = {}, {}  # it has no public way to start anew
            training.step()
            peak, end = (other.get_tracker_snapshot(kind)[cpu] for kind in ("peak", "current"))
            figures.append((peak["Total"], end["Total"]))
    return figures


def profiled(step, base):
    """The running total after every allocation and free that the profiler saw."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        step()
    events = [
        (event.start_ns(), i, event.nbytes())
        for i, event in enumerate(profile.profiler.kineto_results.events())
        if event.name() == "[memory]"
    ]
    totals = [base]
    for _, _, change in sorted(events):
        totals.append(totals[-1] + change)
    return totals


@pytest.mark.sample(11)
@pytest.mark.parametrize("config", CONFIGS, ids="-".join)
def test_agrees_with_mem_tracker_at_every_peak_and_step_end(config):
    assert tracked(Training(*config)) == mem_tracked(Training(*config))


@pytest.mark.sample(11)
@pytest.mark.parametrize("config", CONFIGS, ids="-".join)
def test_agrees_with_the_profiler_but_for_scratch_inside_a_kernel(config):
    alone = Training(*config)
    alone.step()
    totals = profiled(alone.step, storage_bytes(alone.model, alone.optimizer, alone.batch))

    training = Training(*config)
    training.step()
    with Tracker() as tracker:
        tracker.label([training.model, training.optimizer])
        tracker.label(training.batch, "inputs")
        start, base = len(tracker.timeline), tracker.current
        together = profiled(training.step, base)
        peak, end = tracker.peak, tracker.current

    assert end == totals[-1] == together[-1]
    if config in NO_SCRATCH:
        assert peak == max(totals) == max(together)
    else:
        assert peak <= max(totals) and peak <= max(together)

    # Stronger than the peak: after every operator, and every run of frees, the totals agree.
    events = [*tracker.timeline[start:], None]
    assert all(event is None or event.kind != "seen" for event in events)
    moments = iter(together)
    for event, after in zip(events, events[1:], strict=False):
        if after is None or (after.op, after.kind) != (event.op, event.kind):
            assert event.total in moments, event


def test_a_number_that_autograd_wraps_is_eight_bytes_only_the_profiler_sees():
    x = torch.randn(100, requires_grad=True)
    kept = []
    with Tracker() as tracker:
        tracker.label(x, "inputs")
        totals = profiled(lambda: kept.append(x * 0.5), tracker.current)
        assert tracker.current == 800
    assert totals[-1] == 808


def test_gradients_that_meet_are_added_out_of_place_under_any_dispatch_mode():
    """The one change that watching makes: a buffer more, for a moment, where two paths join."""

    def backward():
        x = torch.ones(1000, requires_grad=True).exp()
        (x.sin() + x.cos()).sum().backward()

    totals = profiled(backward, 0)
    with Tracker() as tracker:
        together = profiled(backward, 0)
    assert max(together) == tracker.peak >= max(totals)
    assert together[-1] == totals[-1] == tracker.current == 0
    joined = [e for e in tracker.timeline if e.kind == "alloc" and e.op == "aten.add.Tensor"]
    assert len(joined) == 2  # the sum in the forward pass, and the sum of gradients
    assert len(together) == len(totals) + 2  # the latter, born and freed


def test_contents_name_everything_and_add_up_at_any_event():
    training = Training("llama")
    with Tracker() as tracker:
        tracker.label([training.model, training.optimizer])
        tracker.label(training.batch, "inputs")
        with tracker.phase("forward"):
            loss = training.model(*training.batch)
            held = tracker.contents()
            assert held["activations"] > 0 == held["gradients"]
        with tracker.phase("backward"):
            loss.backward()
        with tracker.phase("step"):
            training.optimizer.step()
        now = tracker.contents()
    parts = resident(training.model, training.optimizer)
    assert {name: now[name] for name in parts} == parts
    assert now["inputs"] == storage_bytes(training.batch)
    assert now["other"] == 4  # the loss
    assert list(now) == list(CATEGORIES)
    for event in tracker.timeline:
        assert sum(tracker.contents(event.index).values()) == event.total
    assert sum(tracker.contents("peak").values()) == tracker.peak == tracker.peak_event.total
    assert {event.phase for event in tracker.timeline} == {"", "forward", "backward", "step"}
    totals = [0] + [event.total for event in tracker.timeline]
    assert [b - a for a, b in zip(totals, totals[1:], strict=False)] == [
        event.bytes for event in tracker.timeline
    ]
    assert "peak" in repr(tracker)


def test_a_category_is_what_a_storage_turned_out_to_be():
    with Tracker() as tracker:
        x = torch.ones(8)
        born = tracker.timeline[-1].index
        assert tracker.contents()["other"] == 32
        tracker.label({"cache": [x]}, "kv_cache")
        assert tracker.contents(born)["kv_cache"] == 32
        tracker.label(x, "inputs")
        assert tracker.contents(born)["inputs"] == 32
    del x
    assert tracker.contents()["inputs"] == 32  # counting stopped with the block


def test_gradients_are_found_though_a_hook_drops_them_at_once():
    layer = nn.Linear(16, 16, bias=False)

    def step_and_drop(parameter):
        parameter.grad = None

    layer.weight.register_post_accumulate_grad_hook(step_and_drop)
    with Tracker() as tracker:
        tracker.label(layer)
        layer(torch.ones(4, 16)).sum().backward()
        assert tracker.contents()["gradients"] == 0
    assert max(tracker.contents(e.index)["gradients"] for e in tracker.timeline) == 1024


def test_gradients_set_by_hand_are_found_after_the_step():
    layer = nn.Linear(16, 16, bias=False)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    with Tracker() as tracker:
        tracker.label([layer, optimizer])
        layer.weight.grad = torch.ones(16, 16)
        optimizer.step()
        assert tracker.contents()["gradients"] == 1024


def test_a_view_of_an_older_storage_is_not_a_new_allocation():
    old = torch.ones(1000)
    with Tracker() as tracker:
        part = old[10:20]
        assert [e.kind for e in tracker.timeline] == ["seen"]
        assert tracker.current == 4000
        again = part.view(2, 5).t()
        assert tracker.current == 4000
        made = again + 1
        assert tracker.current == 4040
    assert made.shape == (5, 2)


def test_an_older_storage_handed_over_bare_is_not_new_either():
    old = torch.ones(1000).untyped_storage()
    with Tracker() as tracker:
        x = torch.empty(0).set_(old)
        assert tracker.current == old.nbytes() == x.untyped_storage().nbytes()
        assert [e.bytes for e in tracker.timeline if e.kind == "seen"] == [4000]


def test_a_constant_is_new():
    with Tracker() as tracker:
        x = torch.tensor([1.0, 2.0])
        assert [(e.kind, e.bytes) for e in tracker.timeline] == [("alloc", x.nbytes)]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_resizing_counts_both_ways(device):
    with Tracker() as tracker:
        x = torch.empty(1000, device=device)
        x.resize_(2000)
        assert tracker.current == 8000
        x.untyped_storage().resize_(0)
        assert tracker.current == 0
        x.untyped_storage().resize_(400)
        assert tracker.current == 400 and tracker.peak == 8000
        if device == "cpu":
            out = torch.empty(0)
            torch.add(torch.ones(10), 1, out=out)
            assert tracker.current == 440
    assert "resize" in [e.kind for e in tracker.timeline]


def test_everything_patched_is_restored_even_after_an_exception():
    hooks = torch.autograd.graph.saved_tensors_hooks
    enter, owned = hooks.__enter__, "resize_" in torch.UntypedStorage.__dict__
    layer = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    with pytest.raises(KeyError), Tracker() as tracker:
        tracker.label([layer, optimizer])
        assert layer.weight._post_accumulate_grad_hooks
        raise KeyError
    assert hooks.__enter__ is enter
    assert ("resize_" in torch.UntypedStorage.__dict__) == owned
    assert not layer.weight._post_accumulate_grad_hooks
    assert not optimizer._optimizer_step_post_hooks
    assert torch._dynamo.eval_frame._stance.stance == "default"
    torch.ones(100)
    assert tracker.current == storage_bytes(layer)


def test_the_tracker_keeps_nothing_alive():
    layer, x = nn.Linear(64, 64), torch.randn(8, 64)
    with Tracker() as tracker:
        tracker.label(layer)
        y = layer(x).exp()  # exp saves its own output: hooks must not tie it to itself
        gone = weakref.ref(y.untyped_storage())
        before = tracker.current
        del y
        assert gone() is None and tracker.current < before
        optimizer = tracker.label(torch.optim.SGD(layer.parameters(), 0.1))
        dead = [weakref.ref(thing) for thing in (layer, optimizer)]
        del layer, optimizer
        gc.collect()
        assert [ref() for ref in dead] == [None, None]
        assert tracker.current == x.nbytes


def test_label_before_the_block_and_after_it():
    layer, x = nn.Linear(8, 8), torch.ones(2, 8)
    tracker = Tracker()
    tracker.label(layer)
    assert tracker.current == storage_bytes(layer)
    with tracker:
        y = layer(x)
        y.sum().backward()
    assert tracker.contents()["gradients"] == storage_bytes(layer)
    tracker.label(y, "logits")
    assert tracker.contents()["logits"] == y.nbytes
    tracker.label(torch.ones(5), "inputs")
    assert tracker.contents()["inputs"] == 0


def test_tied_frozen_and_buffers():
    model = nn.ModuleDict({"a": nn.Linear(8, 8, bias=False), "b": nn.Linear(8, 8, bias=False)})
    model["b"].weight = model["a"].weight
    model["norm"] = nn.BatchNorm1d(8).requires_grad_(False)
    with Tracker() as tracker:
        tracker.label(model)
        assert tracker.contents()["weights"] == 256 + 2 * 32
        assert tracker.contents()["buffers"] == 2 * 32 + 8
        tracker.label(model["norm"], "teacher")
        assert tracker.contents()["teacher"] == 4 * 32 + 8


@pytest.mark.parametrize("where", ["meta", "fake"])
def test_meta_and_fake_tensors_give_the_bytes_of_the_real_run(where):
    def run(device):
        layers = [nn.Linear(32, 64, device=device), nn.GELU(), nn.Linear(64, 8, device=device)]
        model, x = nn.Sequential(*layers), torch.ones(16, 32, device=device)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        with Tracker() as tracker:
            tracker.label([model, optimizer])
            tracker.label(x, "inputs")
            for _ in range(2):
                model(x).sum().backward()
                optimizer.step()
                model.zero_grad()
        return tracker.peak, tracker.current, tracker.contents("peak"), tracker.peak_event.op

    real = run("cpu")
    if where == "meta":
        assert run("meta") == real
    else:
        with FakeTensorMode():
            assert run("cpu") == real


def test_a_billion_parameter_step_fits_in_a_test():
    with torch.device("meta"):
        model = Llama(width=2048, layers=22, heads=32, kv_heads=4, hidden=5632)
        batch = [torch.zeros(1, 24, dtype=torch.long) for _ in range(2)]
    optimizer = torch.optim.AdamW(model.parameters())
    with Tracker() as tracker:
        tracker.label([model, optimizer])
        tracker.label(batch, "inputs")
        model(*batch).backward()
        optimizer.step()
    P = sum(p.numel() for p in model.parameters())
    steps = 4 * len(list(model.parameters()))
    contents = tracker.contents()
    assert P > 900_000_000
    assert [contents[c] for c in ("weights", "gradients", "optimizer")] == [
        4 * P,
        4 * P,
        8 * P + steps,
    ]


def test_device_filter_and_rounding():
    with Tracker(device="meta", round_to=512) as tracker:
        x = torch.ones(1)
        y = torch.ones(129, device="meta")
        z = torch.ones(0, device="meta")
        assert tracker.current == 1024
    assert x.nbytes + y.nbytes + z.nbytes == 520
    with pytest.raises(ValueError, match="device='gpu'"):
        Tracker(device="gpu")
    with pytest.raises(ValueError, match="round_to=0"):
        Tracker(round_to=0)


def test_two_trackers_may_watch_at_once():
    with Tracker() as outer:
        a = torch.ones(10)
        with Tracker() as inner:
            b = torch.ones(5)
            b.untyped_storage().resize_(400)
        assert (inner.current, outer.current) == (400, 440)
    assert a.nbytes == 40


def test_wrapper_subclasses_count_what_they_are_made_of():
    pytest.importorskip("torchao")
    nf4 = pytest.importorskip("torchao.quantization.quantize_.workflows.nf4.nf4_tensor")
    weight = nf4.to_nf4(torch.randn(1024, 512, dtype=torch.bfloat16), 64, 256)
    assert weight.untyped_storage().nbytes() == 1024 * 512 * 2  # the shell says the logical size
    # packed codes; scales in int8 and their factors; the mean of the scales; the code book
    true = 1024 * 512 // 2 + 8192 + 32 * 2 + 2 + 16 * 2
    assert storage_bytes(weight) == true
    with Tracker() as tracker:
        tracker.label(weight, "weights")
        assert tracker.contents()["weights"] == tracker.current == true
        x = torch.randn(4, 512, dtype=torch.bfloat16)
        torch.nn.functional.linear(x, weight.to(torch.bfloat16))
        assert tracker.current == true + x.nbytes
        # the weight in bf16 for a moment, and what unpacking it takes inside the subclass
        assert tracker.peak > true + 2 * (1024 * 512 * 2)


def test_sparse_tensors_count_indices_and_values():
    assert storage_bytes(torch.eye(8).to_sparse()) == 2 * 8 * 8 + 8 * 4
    with Tracker() as tracker:
        x = torch.eye(8).to_sparse()
        assert tracker.current == storage_bytes(x)


@pytest.mark.filterwarnings("ignore:.*KernelPreference.*")  # torchao registers an enum, on import
def test_torchao_optimizer_steps_inside_the_block_without_compiling():
    from torchao.optim import AdamW8bit

    P = 256 * 256
    layer = nn.Linear(256, 256, bias=False)
    optimizer = AdamW8bit(layer.parameters())
    with Tracker() as tracker:
        tracker.label([layer, optimizer])
        for _ in range(2):
            layer(torch.ones(2, 256)).sum().backward()
            optimizer.step()
            layer.zero_grad()
        # codes, a scale for each 256, a code book of 256 values for each; step, learning rate
        state = 2 * (P + 4 * P // 256 + 4 * 256) + 4 + 4
        assert tracker.contents()["optimizer"] == state == storage_bytes(optimizer)
    # run eagerly, its intermediate results are memory: more than three fp32 copies of the weight
    assert tracker.contents("peak")["other"] > 3 * 4 * P


def test_compiled_functions_run_eagerly_inside_and_freely_after():
    calls = []

    def backend(graph, inputs):
        calls.append(graph)
        return graph.forward

    double = torch.compile(lambda x: x + x, backend=backend)
    with Tracker():
        double(torch.ones(3))
    assert not calls
    double(torch.ones(3))
    assert calls


def test_checkpointing_keeps_inputs_then_recomputes():
    from torch.utils.checkpoint import checkpoint

    block = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 16), nn.GELU())
    x = torch.randn(8, 64, requires_grad=True)
    with Tracker() as tracker:
        tracker.label(block)
        tracker.label(x, "inputs")
        y = checkpoint(block, x, use_reentrant=False)
        assert tracker.contents()["activations"] == 0
        y.sum().backward()
    # recomputed: the input of each GELU and of the second Linear. Checkpointing took them with its
    # own hooks, and stopped at the last one by an exception.
    held = max(tracker.contents(e.index)["activations"] for e in tracker.timeline)
    assert held == 8 * (32 + 32 + 16) * 4


def test_offloaded_activations_are_the_copies():
    layer = nn.Linear(64, 64)
    with Tracker() as tracker:
        tracker.label(layer)
        with torch.autograd.graph.save_on_cpu():
            y = layer(torch.ones(8, 64)).exp()
        assert tracker.contents()["activations"] == 2 * 8 * 64 * 4
    assert y.shape == (8, 64)


def test_sharded_modules_and_their_meshes():
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Shard, distribute_tensor

    fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    dist.init_process_group("fake", store=fake.FakeStore(), rank=0, world_size=4)
    try:
        mesh = init_device_mesh("cpu", (4,))
        x = distribute_tensor(torch.ones(64, 64), mesh, [Shard(0)])
        with Tracker() as tracker:
            tracker.label(x, "weights")
            y = x @ x  # gathers the right factor, inside the subclass, then drops it
            assert (
                tracker.current == 2 * storage_bytes(x) == 2 * 16 * 64 * 4 == 2 * storage_bytes(y)
            )
            assert tracker.peak >= tracker.current + 64 * 64 * 4
        model = nn.Sequential(*[nn.Linear(64, 64, bias=False) for _ in range(4)])
        for layer in model:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        shard = 4 * 64 * 64 * 4 // 4
        assert storage_bytes(model) == shard
        with Tracker() as tracker:
            tracker.label([model, optimizer])
            model(torch.ones(8, 64)).sum().backward()
            optimizer.step()
            contents = tracker.contents()
        assert [contents[c] for c in ("weights", "gradients")] == [shard, shard]
        assert contents["optimizer"] == 2 * shard + 4 * 4
        # gathered weights are freed by resizing their storage
        assert any(e.kind == "resize" and e.bytes == -64 * 64 * 4 for e in tracker.timeline)
    finally:
        dist.destroy_process_group()


def test_a_tracker_is_entered_once():
    with Tracker() as tracker:
        with pytest.raises(RuntimeError, match="already recording"):
            tracker.__enter__()
        x = torch.ones(3)
    assert tracker.current == x.nbytes
    with pytest.raises(RuntimeError, match="has recorded its block"):
        tracker.__enter__()


def test_wrong_input_fails_by_name():
    tracker = Tracker()
    assert tracker.peak_event is None and tracker.peak == 0
    assert tracker.contents("peak") == dict.fromkeys(CATEGORIES, 0)
    with pytest.raises(TypeError, match="needs a category"):
        tracker.label(torch.ones(1))
    with pytest.raises(TypeError, match="category=''"):
        tracker.label(torch.ones(1), "")
    with pytest.raises(TypeError, match="str"):
        tracker.label("model", "weights")
    for at in (0, -1, True, "end"):
        with pytest.raises(ValueError, match=f"at={at!r} is not an event"):
            tracker.contents(at)
    with pytest.raises(TypeError, match="int"):
        storage_bytes(7)
    with pytest.raises(TypeError, match="module is a Tensor"):
        resident(torch.ones(1))
    with pytest.raises(TypeError, match="optimizer is a Linear"):
        resident(nn.Linear(1, 1), nn.Linear(1, 1))


def test_resident_counts_each_storage_once():
    training = Training("gpt")
    training.model(*training.batch).backward()
    training.optimizer.step()
    parts = resident(training.model, training.optimizer)
    P = sum(p.numel() for p in training.model.parameters())
    tensors = len(list(training.model.parameters()))
    assert parts["weights"] == parts["gradients"] == 4 * P
    assert parts["optimizer"] == 8 * P + 4 * tensors
    assert parts["buffers"] == storage_bytes(list(training.model.buffers()))
    assert resident(training.model)["optimizer"] == 0
    x = torch.ones(10)
    assert storage_bytes(x, x[2:], x.untyped_storage(), {"a": [x.t()]}, (None, 3)) == 40


def test_what_memlab_imports_leaves_stderr_quiet():
    """Torchao too, where memlab brings it; imported by somebody else it says what it likes."""
    pytest.importorskip("torchao")
    code = (
        "import memlab.measure; from memlab.lab.blocks import torchao; "
        "torchao('optim'), torchao('quantization')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_agrees_with_the_cuda_allocator():
    base = torch.cuda.memory_allocated()
    with Tracker("cuda", round_to=512) as tracker:
        x = torch.ones(1000, device="cuda")
        y = torch.ones(3, device="cuda")
        assert tracker.current == torch.cuda.memory_allocated() - base
        del x, y
        assert tracker.current == torch.cuda.memory_allocated() - base == 0
