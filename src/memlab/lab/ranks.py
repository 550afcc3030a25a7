"""Several ranks on one machine: two real processes that talk, or one that pretends to be of many.

A *rank* is one process of a run, usually with a device of its own. `on_ranks` starts real ones on
the CPU. `fake_ranks` makes this process rank 0 of as many as you like: tensors have no values,
every collective returns at once, and shapes, storages and moments are those of the real thing.
"""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

CHILD = "import sys; from memlab.lab.ranks import _child; _child(*sys.argv[1:])"


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
        started = [
            subprocess.Popen(
                [*command, str(rank)],
                env=os.environ | settings,
                stdout=subprocess.DEVNULL,  # gloo says there that it is connected
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(ranks)
        ]
        try:
            said = [process.communicate(timeout=seconds)[1] for process in started]
            failed = [w for w, process in zip(said, started, strict=True) if process.returncode]
            if failed:
                raise RuntimeError("a rank failed:\n" + "\n".join(failed))
        finally:
            for process in started:  # one that is too late must not stay
                process.kill()
                process.communicate()
        return [pickle.loads(Path(folder, f"done{rank}").read_bytes()) for rank in range(ranks)]


def in_turn(*calls: tuple[Any, ...]) -> list[Any]:
    """What several functions return, one after the other: (function, its arguments ...) each.

    For `on_ranks`, so that processes start only once.
    """
    return [function(*arguments) for function, *arguments in calls]


def _child(folder: str, ranks: str, rank: str) -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/store", int(ranks))
    dist.init_process_group("gloo", store=store, rank=int(rank), world_size=int(ranks))
    try:
        function, arguments = pickle.loads(Path(folder, "task").read_bytes())
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
