"""A snapshot names the line of its reader's own code, whatever PyTorch recorded around it."""

import pickle

import pytest

from memlab.files.frames import NOWHERE, line_of
from memlab.files.snapshots import BEFORE, read_snapshot

# As torch.cuda.memory._record_memory_history() records by default: C++ first, by bare names.
CPP = [
    ("??", 0, "torch::unwind::unwind()"),
    ("memory_snapshot.cpp", 0, "torch::cuda::(anonymous namespace)::gather_with_cpp()"),
    ("CUDACachingAllocator.cpp", 0, "c10::cuda::CUDACachingAllocator::Native::malloc()"),
    ("", 0, "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate()"),
    ("RegisterCUDA_0.cpp", 0, "at::(anonymous namespace)::wrapper_CUDA__softmax()"),
    ("/usr/local/src/conda/python-3.11.9/Objects/call.c", 215, "_PyObject_MakeTpCall"),
]
TORCH = ("/opt/env/lib/python3.12/site-packages/torch/nn/modules/module.py", 1790, "_call_impl")
DEBIAN = ("/usr/lib/python3/dist-packages/transformers/trainer.py", 2000, "train")
STANDARD = ("/usr/lib/python3.10/threading.py", 975, "run")
MINE = ("/home/me/train.py", 12, "forward")
WINDOWS = ("C:\\Users\\me\\work\\train.py", 12, "forward")
PYTHON_ON_WINDOWS = ("C:\\Python311\\Lib\\runpy.py", 86, "_run_code")
CELL = ("/tmp/ipykernel_77/1234567.py", 3, "<module>")
OLD_CELL = ("<ipython-input-4-0123abcd>", 3, "<module>")
RUNTIME = ("libc.so.6", 0, "__libc_start_main")


@pytest.mark.parametrize(
    "frames, said",
    [
        ([*CPP, TORCH, MINE], "train.py:12 forward"),
        ([MINE, TORCH], "train.py:12 forward"),
        ([*CPP, TORCH, DEBIAN, STANDARD, WINDOWS], "train.py:12 forward"),
        ([PYTHON_ON_WINDOWS, WINDOWS], "train.py:12 forward"),
        ([*CPP, TORCH, CELL], "1234567.py:3 <module>"),
        ([*CPP, TORCH, OLD_CELL], "<ipython-input-4-0123abcd>:3 <module>"),
        ([*CPP, TORCH, STANDARD], "module.py:1790 _call_impl"),  # no line of the reader's
        (CPP, "operator softmax"),
        ([("", 0, "at::_ops::empty_strided::call()"), *CPP], "operator softmax"),
        ([*CPP[:4], RUNTIME], "??:0 torch::unwind::unwind()"),
        ([], NOWHERE),
        (
            [
                *CPP,
                ("", 0, "torch::autograd::generated::SoftmaxBackward0::apply()"),
                ("", 0, "torch::autograd::Engine::thread_main()"),
            ],
            "backward: SoftmaxBackward0",
        ),
        ([*CPP, ("", 0, "torch::autograd::Engine::thread_main()")], "backward"),
        (
            [
                *CPP,
                ("", 0, "at::cuda::getCurrentCUDABlasHandle(bool)"),
                ("", 0, "torch::autograd::generated::MmBackward0::apply()"),
            ],
            "a workspace of cuBLAS",
        ),
        ([*CPP, ("", 0, "c10d::ProcessGroupNCCL::allreduce()")], "NCCL"),
        (
            [*CPP, ("", 0, "at::native::raw_cudnn_convolution_forward_out()")],
            "a workspace of cuDNN",
        ),
        ([("a.cpp", 1, "at::_ops::add_Tensor::call()")], "operator add_Tensor"),
        ([("\x1b[2J.py", 1, "x" * 500)], f"?[2J.py:1 {'x' * 150}"),
        ([("", 0, "autograd::" * 100_000)], ":0 " + ("autograd::" * 20)[:157]),
    ],
)
def test_the_line_is_the_reader_s_own(frames, said):
    assert line_of(frames) == said


def test_a_snapshot_is_told_by_line_and_what_has_none_by_its_operator(tmp_path):
    def block(frames, mebibytes, place):
        size = mebibytes * 2**20
        named = [dict(zip(("filename", "line", "name"), one, strict=True)) for one in frames]
        event = {"action": "alloc", "addr": place, "size": size, "stream": 0, "frames": named}
        held = {"address": place, "size": size, "state": "active_allocated", "frames": named}
        return event, held

    made = [
        block([*CPP, TORCH, MINE], 512, 1),
        block([*CPP, ("", 0, "torch::autograd::Engine::thread_main()")], 256, 2),
        block([*CPP, ("", 0, "ncclCommInitRank")], 64, 3),
    ]
    segment = {"device": 0, "address": 1, "total_size": 832 * 2**20, "segment_type": "large"}
    path = tmp_path / "run.pickle"
    path.write_bytes(
        pickle.dumps(
            {
                "segments": [segment | {"blocks": [held for _, held in made]}],
                "device_traces": [[event for event, _ in made]],
            }
        )
    )
    found = read_snapshot(str(path))
    wanted = [(512, "train.py:12 forward"), (256, "backward"), (64, "NCCL")]
    assert [(place.bytes // 2**20, place.where) for place in found.at_peak] == wanted
    assert [(place.bytes // 2**20, place.where) for place in found.held] == wanted
    assert BEFORE not in str(found)
