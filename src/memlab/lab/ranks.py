"""Several ranks on one machine: two real processes that talk, or one that pretends to be of many.

A *rank* is one process of a run, usually with a device of its own. `on_ranks` starts real ones on
the CPU. `fake_ranks` makes this process rank 0 of as many as you like: tensors have no values,
every collective returns at once, and shapes, storages and moments are those of the real thing.
"""

import gc
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

CHILD = "import sys; from memlab.lab.ranks import _child; _child(*sys.argv[1:])"
# What a task that names a package will import in each rank, and takes longer than its steps.
SLOW = {
    b"transformers": ("transformers.models.auto.modeling_auto", "transformers.modeling_utils"),
    b"trainer": ("transformers.trainer",),
    b"lora": ("peft",),
}
# Where a process that has imported torch can be copied; on macOS its frameworks do not bear it.
COPIES = sys.platform == "linux"


def on_ranks(
    ranks: int, function: Callable[..., Any], *arguments: Any, seconds: float = 300
) -> list[Any]:
    """What `function(*arguments)` returns on each of `ranks` processes, in the order of ranks.

    function    one that a module defines, because each process imports it by name; inside it
                torch.distributed is ready (gloo, which runs on the CPU)
    Leaves out  the network: the processes find each other by a file and talk over the loopback
    Raises      RuntimeError with what a process said, where one fails; TimeoutExpired
    """
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder, "task")
        task.write_bytes(pickle.dumps((function, arguments)))
        loopback = {"linux": "lo", "darwin": "lo0"}.get(sys.platform)
        settings = {"GLOO_SOCKET_IFNAME": loopback} if loopback else {}
        settings |= {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", CHILD, folder, str(ranks)]
        every = [str(rank) for rank in range(ranks)]
        started = [
            subprocess.Popen(
                [*command, *its],
                env=os.environ | settings,
                stdout=subprocess.DEVNULL,  # gloo says there that it is connected
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            for its in ([every] if COPIES else [[rank] for rank in every])
        ]
        try:
            said = [process.communicate(timeout=seconds)[1] for process in started]
            failed = [w for w, process in zip(said, started, strict=True) if process.returncode]
            if failed:
                raise RuntimeError("a rank failed:\n" + "\n".join(failed))
        finally:
            for process in started:  # one that is too late must not stay, nor its copies
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL) if COPIES else process.kill()
                process.communicate()
        return [pickle.loads(Path(folder, f"done{rank}").read_bytes()) for rank in range(ranks)]


def in_turn(*calls: tuple[Any, ...]) -> list[Any]:
    """What several functions return, one after the other: (function, its arguments ...) each.

    For `on_ranks`, so that processes start only once.
    """
    return [function(*arguments) for function, *arguments in calls]


def _child(folder: str, ranks: str, *its: str) -> None:
    """Be one rank, or import once what several need and let a copy of this process be each."""
    torch.set_num_threads(1)
    task = Path(folder, "task").read_bytes()
    function, arguments = pickle.loads(task)
    works = [partial(_work, folder, int(ranks), int(rank), function, arguments) for rank in its]
    if len(works) == 1:
        return works[0]()
    import_module("torch._dynamo")  # by any optimizer, and as slow
    for word, modules in SLOW.items():
        if word in task and find_spec(modules[0].partition(".")[0]):
            for name in modules:
                import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a rank need not look through all of torch
    copies = [_copy(work) for work in works]
    if any([os.waitpid(copy, 0)[1] for copy in copies]):
        sys.exit(1)
    return None


def _copy(work: Callable[[], None]) -> int:
    """The process id of a copy of this process that does `work` and ends."""
    copy = os.fork()
    if copy:
        return copy
    failed = True
    try:
        work()
        failed = False
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(failed)


def _work(
    folder: str, ranks: int, rank: int, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    store = dist.FileStore(f"{folder}/store", ranks)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
    try:
        Path(folder, f"done{rank}").write_bytes(pickle.dumps(function(*arguments)))
    finally:
        dist.destroy_process_group()


@contextmanager
def fake_group(ranks: int) -> Iterator[None]:
    """Make this process rank 0 of so many: every collective returns at once, its result unwritten.

    Source      torch.testing._internal.distributed.fake_pg, with which PyTorch tests itself
    Leaves out  other ranks, time on the wire, buffers inside a communication library
    """
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)
    try:
        yield
    finally:
        dist.destroy_process_group()


@contextmanager
def fake_ranks(data: int, tensor: int = 1) -> Iterator[tuple[DeviceMesh, DeviceMesh]]:
    """Make this process rank 0 of `data` · `tensor` ranks; tensors made inside have no values.

    Shapes      gives two meshes: the ranks that see other data, and those that divide matrices
    Leaves out  as `fake_group`
    """
    with fake_group(data * tensor):
        # Meshes hold numbers of ranks and look at them: they are made before the tensors are fake.
        mesh = init_device_mesh("cpu", (data, tensor), mesh_dim_names=("data", "tensor"))
        meshes = mesh["data"], mesh["tensor"]
        with FakeTensorMode(allow_non_fake_inputs=True):
            yield meshes
