"""What is elsewhere is the same when it comes back, and the device holds what the formulas say."""

import weakref
from contextlib import nullcontext

import pytest
import torch

from memlab import Model, Run
from memlab.lab import text
from memlab.lab.generate import Cache, generate
from memlab.lab.host import File, Host
from memlab.lab.models import TinyGPT, TinyLlama
from memlab.lab.offload import Offload
from memlab.lab.offloaded_optimizer import OffloadedStates
from memlab.lab.streaming import Stream, stream
from memlab.lab.train import one_thread
from memlab.measure import Tracker, saved
from memlab.step.simulate import simulate
from memlab.terms.offloading import microseconds, pcie, streamed, tokens_to_hide, traffic

LLAMA = Model.preset("tiny-llama")


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=3e-3, foreach=False)


def run(offload=(), *, batch=8, tokens=64, steps=2, build=TinyLlama, at_once=False):
    """The net after some steps, the tracker, what is held after forward, and the two hosts."""
    torch.manual_seed(0)
    net, hosts = build(LLAMA), {part: File() for part in offload}
    opt = adamw(net.parameters())
    if "states" in offload:
        opt = OffloadedStates(net.parameters(), adamw, hosts["states"], at_once=at_once)
    with one_thread(), Tracker() as tracker:
        tracker.label(net)
        for ids in text.batches(batch, tokens, steps=steps):
            tracker.label(ids, "inputs")
            away = Offload(hosts["saved"], keep=[net, ids]) if "saved" in offload else None
            with away or nullcontext():
                loss = net(ids, ids)
            held = tracker.current
            loss.backward()
            del loss
            opt.step()
            opt.zero_grad()
    return net, tracker, held, hosts


@pytest.fixture(scope="module")
def plain():
    return run()[0].state_dict()


@pytest.mark.parametrize("offload", [("saved",), ("states",), ("saved", "states")])
def test_training_is_equal_bit_for_bit(offload, plain):
    net, _, _, hosts = run(offload)
    assert all(torch.equal(value, plain[name]) for name, value in net.state_dict().items())
    for host in hosts.values():
        assert host.sent >= host.brought > 0


@pytest.mark.sample(5)
@pytest.mark.parametrize("offload", [(), ("saved",), ("states",), ("saved", "states")])
@pytest.mark.parametrize(("batch", "tokens"), [(8, 64), (1, 8)])
def test_the_device_holds_what_is_simulated(offload, batch, tokens):
    _, tracker, held, _ = run(offload, batch=batch, tokens=tokens)
    how = {"batch": batch, "tokens": tokens, "implementation": "memlab"}
    step = simulate(LLAMA, "fp32", Run.cpu(offload=offload, **how))
    text_bytes = text.tokens().nbytes  # the passages are cut out of it meanwhile
    assert tracker.peak - text_bytes == step.peak.bytes
    assert held - text_bytes == step.held["after_forward"]


@pytest.mark.parametrize("case", ["gpt", "bf16", "autocast", "chunked loss", "two micro-batches"])
def test_other_steps_hold_what_is_simulated(case):
    model, build = (Model.preset("tiny-gpt"), TinyGPT) if case == "gpt" else (LLAMA, TinyLlama)
    recipe = case if case in ("bf16", "autocast") else "fp32"
    chunks, k = 4 * (case == "chunked loss"), 1 + (case == "two micro-batches")
    net = build(model, loss_chunks=4) if chunks else build(model)
    net = net.bfloat16() if case == "bf16" else net
    cast = torch.autocast("cpu", torch.bfloat16, enabled=case == "autocast")
    ids, host = torch.zeros(4, 32, dtype=torch.long), File()
    opt = OffloadedStates(net.parameters(), adamw, File())
    with one_thread(), Tracker() as tracker:
        tracker.label(net)
        tracker.label(ids, "inputs")
        for _ in range(2):
            for _ in range(k):
                with Offload(host, keep=[net, ids]), cast:
                    loss = net(ids, ids)
                    loss = loss / k if k > 1 else loss
                loss.backward()
                del loss
            opt.step()
            opt.zero_grad()
    how = {"batch": 4, "tokens": 32, "implementation": "memlab", "micro_batches": k}
    how |= {"loss": "chunked", "loss_chunks": 4} if chunks else {}
    step = simulate(model, recipe, Run.cpu(offload=("saved", "states"), **how))
    assert tracker.peak == step.peak.bytes


def test_layers_that_are_only_counted():
    how = {"batch": 1, "tokens": 16, "implementation": "memlab", "offload": ("saved", "states")}
    model = LLAMA.replace(layers=7)
    each = simulate(model, "bf16", Run.cpu(**how), every_layer=True)
    assert simulate(model, "bf16", Run.cpu(**how)).peak.bytes == each.peak.bytes


def test_every_storage_crosses_once_each_way():
    net = TinyLlama(LLAMA)
    (ids,) = text.batches(2, 32, steps=1)
    kept = saved(lambda: net(ids, ids), exclude=[net, ids]).bytes
    host = File()
    with Offload(host, keep=[net, ids]):
        loss = net(ids, ids)
    assert host.sent == host.held == kept
    loss.backward()
    assert host.brought == kept and traffic(saved=kept) == host.sent + host.brought
    del loss
    assert host.held == 0  # and the next step may write over it
    before = host.size
    with Offload(host, keep=[net, ids]):
        net(ids, ids).backward()
    assert host.size == before


def test_a_view_is_not_sent_again_but_a_new_version_is():
    host, x = Host(), torch.randn(8, requires_grad=True)
    y = x * 1
    with Offload(host, keep=x):
        a = y * y  # y is saved twice
        b = y.view(2, 4).sin()  # a view of it
    assert host.sent == 32
    file, z = File(), (x * 1).detach()
    before = z.clone()
    with Offload(file, keep=x):
        a = x * z
        z.add_(1)
        b = x * z
    assert file.sent == 64
    (gradient,) = torch.autograd.grad((a + b).sum(), x)
    assert torch.equal(gradient, before + z)


def test_small_ones_may_stay():
    host, net = Host(), TinyLlama(LLAMA)
    (ids,) = text.batches(2, 32, steps=1)
    with Offload(host, keep=[net, ids], least=2**13):
        net(ids, ids)
    everything = Host()
    with Offload(everything, keep=[net, ids]):
        net(ids, ids)
    assert host.transfers < everything.transfers and host.sent < everything.sent


def test_all_states_at_once_save_nothing_at_their_peak():
    how = {"batch": 1, "tokens": 8}
    here, at_once = run((), **how)[1].peak, run(("states",), at_once=True, **how)[1].peak
    # One optimizer for all keeps the last quotient of an update into the next one.
    assert here - at_once == LLAMA.d_ff * LLAMA.d_model * 4
    assert run(("states",), **how)[1].peak < 0.6 * here


def test_a_master_copy_elsewhere_is_the_same_as_here():
    torch.manual_seed(0)
    weight = torch.randn(64, 32)
    narrow, wide = (
        torch.nn.Parameter(weight.bfloat16()),
        torch.nn.Parameter(weight.bfloat16().float()),
    )
    host = File()
    opt, reference = OffloadedStates([narrow], adamw, host, master=True), adamw([wide])
    for _ in range(3):
        gradient = torch.randn(64, 32).bfloat16()
        narrow.grad, wide.grad = gradient, gradient.float()
        opt.step()
        reference.step()
    assert torch.equal(narrow, wide.bfloat16())
    assert host.held == 3 * wide.nbytes


@pytest.mark.parametrize("build", [TinyLlama, TinyGPT])
@pytest.mark.parametrize("ahead", [True, False])
def test_a_streamed_model_says_the_same_in_fewer_bytes(build, ahead):
    model = Model.preset("tiny-gpt" if build is TinyGPT else "tiny-llama").replace(layers=6)
    torch.manual_seed(0)
    net, prompt = build(model), text.tokens()[None, :16].clone()
    layer = sum(p.nbytes for p in net.layers[0].parameters())
    rest = sum(p.nbytes for p in net.parameters()) - 6 * layer

    def answered():
        with one_thread(), torch.no_grad(), Tracker() as tracker:
            tracker.label(net)
            return generate(net, prompt, Cache(model, 1, 24), tokens=4), tracker.peak

    (words, peak), host = answered(), File()
    stream(net, host, ahead=ahead)
    assert (host.sent, host.brought) == (6 * layer, 0)
    again, lower = answered()
    assert torch.equal(words, again)
    assert peak - lower == rest + 6 * layer - streamed(6, layer=layer, rest=rest, ahead=int(ahead))
    assert host.brought == 4 * 6 * layer


def test_a_generator_of_layers_is_let_go():
    made = []

    def layers():
        for _ in range(3):
            layer = torch.nn.Linear(4, 4)
            made.append(weakref.ref(layer))
            yield layer
            del layer

    kept = Stream(layers(), File(), torch.device("cpu"))
    assert [ref() is None for ref in made] == [True, True, False]
    assert [tuple(layer.weight.shape) for layer in kept] == [(4, 4)] * 3


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="no layers"):
        Stream([], Host(), torch.device("cpu"))
    with pytest.raises(ValueError, match="layer 1 has other shapes"):
        Stream([torch.nn.Linear(2, 2), torch.nn.Linear(2, 3)], Host(), torch.device("cpu"))
    how = {"batch": 1, "tokens": 8, "implementation": "memlab"}
    for wrong, more in [(("weights",), {}), (("saved",), {"checkpoint": "block"})]:
        with pytest.raises(ValueError, match="offload"):
            simulate(LLAMA, "fp32", Run.cpu(offload=wrong, **how, **more))
    with pytest.raises(ValueError, match="states"):
        simulate(LLAMA, "fp32", Run.cpu(offload=("states",), step_in_backward=True, **how))
    theirs = {"implementation": "transformers", "offload": ("saved",), "loop": "trainer"}
    with pytest.raises(ValueError, match="saved under transformers' code is described for the"):
        simulate(LLAMA, "fp32", Run.cpu(**how | theirs))


def test_the_bus():
    assert pcie(4) == 16 * 16 * 10**9 * 128 // 130 // 8 == 31507692307
    assert pcie(5) == 2 * pcie(4) + 1  # each rounded down
    assert microseconds(pcie(4), bandwidth=pcie(4)) == 10**6
    # The model does not matter: each weight takes b bytes on the bus and 2 FLOP for each token.
    for parameters in (10**6, 8 * 10**9):
        tokens = tokens_to_hide(
            2 * parameters, parameters=parameters, bandwidth=pcie(4), flops=312 * 10**12
        )
        assert tokens == -(-312 * 10**12 // pcie(4))
    assert (
        3 * tokens_to_hide(12, parameters=1, bandwidth=10, flops=50, passes=3)
        >= tokens_to_hide(12, parameters=1, bandwidth=10, flops=50)
        == 30
    )
    with pytest.raises(ValueError, match="nothing hides"):
        tokens_to_hide(1, parameters=0, bandwidth=1, flops=1)
    with pytest.raises(ValueError, match="bandwidth=0"):
        microseconds(1, bandwidth=0)
    with pytest.raises(ValueError, match="known: 3, 4, 5"):
        pcie(7)


def test_a_file_refuses_what_is_not_in_the_cpus_memory():
    storage = torch.empty(8, device="meta").untyped_storage()
    with pytest.raises(ValueError, match=r"a storage on meta: .*Pinned those of a GPU"):
        File().send(storage)
