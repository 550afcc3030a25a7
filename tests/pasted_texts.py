"""What people paste: each kind in all its wordings, made here with figures of our own.

KINDS   name: (text, what is to be read of it); sizes in GiB unless they are whole numbers of bytes
"""

from memlab.units import GiB, KiB, MiB

OOM = "PyTorch's out-of-memory message"
TAIL = (
    " If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation "
    "for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)
SPLIT = (
    " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid "
    "fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
NOW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 1 has a total "
    "capacity of 23.64 GiB of which 0.25 GiB is free. Including non-PyTorch memory, this process "
    "has 23.25 GiB memory in use. Of the allocated memory 21.00 GiB is allocated by PyTorch, and "
    "1.75 GiB is reserved by PyTorch but unallocated." + TAIL
)
FIGURES = {
    "asked": 1.5,
    "capacity": 23.64,
    "free": 0.25,
    "process": 23.25,
    "allocated": 21,
    "reserved": 22.75,
    "device": 1,
    "amount": 22.5,
    "at_least": True,
    "kind": OOM,
}
TRACEBACK = f"""Traceback (most recent call last):
  File "/home/me/train.py", line 41, in <module>
    trainer.train()
  File "/home/me/model.py", line 7, in forward
    return torch.nn.functional.softmax(scores.float(), dim=-1)
{NOW}
"""
SMI = """+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   0  A card of ours                 On  |   00000000:01:00.0 Off |                  Off |
| 30%   54C    P2            287W /  350W |   22528MiB /  24564MiB |     98%      Default |
+-----------------------------------------+------------------------+----------------------+
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|=========================================================================================|
|    0   N/A  N/A     12345      C   python                                      20480MiB |
+-----------------------------------------------------------------------------------------+
"""
SUMMARY = """|===========================================================================|
|                  PyTorch CUDA memory summary, device ID {device}                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 1            |        cudaMalloc retries: 2         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |   5632 {M} |  {peak} {M} |  22536 {M} |  16904 {M} |
|       from large pool |   5543 {M} |   6099 {M} |   8875 {M} |   3332 {M} |
|---------------------------------------------------------------------------|
| GPU reserved memory   |   7168 {M} |   7168 {M} |   7168 {M} |      0 B   |
|---------------------------------------------------------------------------|
"""
METRICS = """  before_init_mem_gpu        =        0MB
  init_mem_cpu_alloc_delta   =     1301MB
  init_mem_gpu_alloc_delta   =      512MB
  init_mem_gpu_peaked_delta  =        0MB
  train_mem_gpu_alloc_delta  =     1024MB
  train_mem_gpu_peaked_delta =     2048MB
  train_runtime              = 0:02:35.20
"""
TABLE = """| key | value |
| --- | ----- |
| init_mem_gpu_alloc_delta | 1073741824 |
| train_mem_gpu_alloc_delta | 2147483648 |
| train_mem_gpu_peaked_delta | 4294967296 |
"""
KINDS = {
    # PyTorch 1.0 to 1.3: what is cached is what no tensor uses.
    "1.0": (
        "RuntimeError: CUDA out of memory. Tried to allocate 768.00 MiB (GPU 2; 10.50 GiB total "
        "capacity; 8.25 GiB already allocated; 512.50 MiB free; 1.25 GiB cached)",
        {"asked": 768 * MiB, "allocated": 8.25, "reserved": 9.5, "device": 2, "amount": 9},
    ),
    "1.4": (
        "RuntimeError: CUDA out of memory. Tried to allocate 12.00 MiB (GPU 0; 2.00 GiB total "
        "capacity; 1.50 GiB already allocated; 0 bytes free; 1.75 GiB reserved in total by "
        "PyTorch)",
        {"asked": 12 * MiB, "free": 0, "allocated": 1.5, "reserved": 1.75, "capacity": 2},
    ),
    "1.8 with a share": (
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 24.00 GiB total "
        "capacity; 9.00 GiB already allocated; 13.00 GiB free; 12.00 GiB allowed; 10.00 GiB "
        "reserved in total by PyTorch)",
        {"allowed": 12, "free": 13, "asked": 2, "reserved": 10},
    ),
    "1.10": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB (GPU 5; 31.75 "
        "GiB total capacity; 27.25 GiB already allocated; 1.50 GiB free; 29.25 GiB reserved in "
        "total by PyTorch)" + SPLIT,
        {"asked": 3.5, "capacity": 31.75, "allocated": 27.25, "reserved": 29.25, "device": 5},
    ),
    "2.0": (
        NOW.replace("capacity of", "capacty of").replace("torch.Out", "torch.cuda.Out"),
        FIGURES,
    ),
    "no number": (NOW.replace("GPU 1 has", "GPU  has"), FIGURES | {"device": None}),
    "2.10": (NOW, FIGURES),
    "a process": (
        NOW.replace("Including non-PyTorch memory, this process", "Process 4711"),
        FIGURES,
    ),
    "two processes": (
        NOW.replace("Including", "Process 17 has 512.00 MiB memory in use. Including").replace(
            "this process has 23.25", "this process has 22.75"
        ),
        FIGURES | {"process": 22.75, "others": 0.5},
    ),
    "private pools": (
        NOW.replace(
            "by PyTorch, and",
            "by PyTorch, with 118.00 MiB allocated in private pools (e.g., CUDA Graphs), and",
        ),
        FIGURES | {"private": 118 * MiB},
    ),
    "KiB and bytes": (
        NOW.replace("1.50 GiB.", "512.00 KiB.").replace("0.25 GiB", "4096 bytes"),
        FIGURES | {"asked": 512 * KiB, "free": 4096, "amount": 21 * GiB + 512 * KiB},
    ),
    "HIP": (NOW.replace("CUDA out", "HIP out").replace("_CUDA_", "_HIP_"), FIGURES),
    "XPU": (NOW.replace("CUDA out", "XPU out"), FIGURES),
    "cudaMallocAsync": (
        "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of "
        "memory)\nCurrently allocated     : 21.50 GiB\nRequested               : 6.50 MiB\nDevice "
        "limit            : 22.00 GiB\nFree (according to CUDA): 10.00 MiB\nPyTorch limit (set by "
        "user-supplied memory fraction)\n                        : 17179869184.00 GiB",
        {"asked": 6 * MiB + MiB // 2, "allocated": 21.5, "capacity": 22, "free": 10 * MiB},
    ),
    "MPS": (
        "RuntimeError: MPS backend out of memory (MPS allocated: 17.50 GB, other allocations: "
        "384.00 MB, max allowed: 18.00 GB). Tried to allocate 256.00 MB on private pool. Use "
        "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations",
        {"asked": 256 * MiB, "allocated": 17.5, "others": 384 * MiB, "allowed": 18},
    ),
    "a host": (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:83] err == 0. DefaultCPUAllocator: can't "
        "allocate memory: you tried to allocate 4294967296 bytes. Error code 12 (Cannot allocate)",
        {"asked": 4, "level": "process"},
    ),
    "cut": (NOW[: NOW.index("Of the allocated")], {"asked": 1.5, "capacity": 23.64, "amount": 1.5}),
    # What stands around a message.
    "a traceback": (TRACEBACK, FIGURES),
    "a rank": (
        "\n".join(f"[rank3]: {line}" for line in TRACEBACK.splitlines()),
        FIGURES | {"rank": 3},
    ),
    "torchrun": (f"[default5]:{NOW}", FIGURES | {"rank": 5}),
    "an engine": (f"(WorkerProc rank=1 pid=254) ERROR 01-02 03:04:05 {NOW}", FIGURES | {"rank": 1}),
    "LoRA's rank": (f"LoRA rank: 16, alpha: 32\n{NOW}", FIGURES | {"rank": None}),
    "a stamp": (f"2026-01-02 03:04:05,678 - ERROR - train - {NOW}", FIGURES | {"rank": None}),
    "colours": ("\x1b[1m\x1b[31m" + NOW.replace(" ", "\x1b[0m ") + "\x1b]0;title\x07", FIGURES),
    "CRLF": (TRACEBACK.replace("\n", "\r\n"), FIGURES),
    "wrapped": ("> " + NOW.replace(". ", ".\n> "), FIGURES),
    "wrapped, with ranks": ("[rank2]: " + NOW.replace(". ", ".\n[rank2]: "), FIGURES | {"rank": 2}),
    "Chinese": (f"训练时报错如下:\n```\n{NOW}\n```\n显存明明还够，请问怎么解决？", FIGURES),
    "German": (f"Der Lauf bricht ab, Meldung: „{NOW}“ Woran liegt das?", FIGURES),
    # Counters.
    "nvidia-smi": (SMI, {"amount": 22, "capacity": 24564 * MiB, "process": 20, "level": "device"}),
    "nvidia-smi, German": (
        "Ausgabe von nvidia-smi auf dem Server, siehe Spalte Speicher:\n" + SMI,
        {"amount": 22, "kind": "nvidia-smi"},
    ),
    "its line": ("22528MiB / 24564MiB", {"amount": 22, "capacity": 24564 * MiB}),
    "its CSV": (
        "timestamp, index, memory.used [MiB], memory.total [MiB]\n"
        "2026/01/02 03:04:05.678, 0, 21504 MiB, 24564 MiB\n"
        "2026/01/02 03:04:06.678, 0, 22528 MiB, 24564 MiB\n",
        {"amount": 22, "capacity": 24564 * MiB, "level": "device"},
    ),
    "its CSV without units": (
        "memory.used [MiB], memory.total [MiB]\n22528, 24564\n",
        {"amount": 22, "capacity": 24564 * MiB},
    ),
    "its CSV without a head": ("21504 MiB, 24564 MiB\n22528 MiB, 24564 MiB\n", {"amount": 22}),
    "gpustat": ("[0] A card | 54'C,  98 % | 22528 / 24564 MB | me(20480M)", {"amount": 22}),
    "a summary": (
        SUMMARY.format(device=0, M="MiB", peak="  6144"),
        {"amount": 6, "allocated": 6, "reserved": 7, "level": "allocated"},
    ),
    "an old summary": (SUMMARY.format(device=0, M="MB ", peak="  6144"), {"amount": 6}),
    "two summaries": (
        SUMMARY.format(device=0, M="MiB", peak="  5632")
        + SUMMARY.format(device=1, M="MiB", peak="  6656"),
        {"amount": 6.5},
    ),
    "Trainer": (METRICS, {"amount": 3.5, "level": "allocated"}),
    "Trainer's dictionary": (
        "{'init_mem_gpu_alloc_delta': 1073741824, 'train_mem_gpu_alloc_delta': 2147483648, "
        "'train_mem_gpu_peaked_delta': 4294967296, 'epoch': 3.0}",
        {"amount": 7},
    ),
    "Trainer's JSON": (
        '{"init_mem_gpu_alloc_delta": 1073741824, "train_mem_gpu_alloc_delta": 2147483648, '
        '"train_mem_gpu_peaked_delta": 4294967296}',
        {"amount": 7},
    ),
    "Trainer's card": (TABLE, {"amount": 7}),
    "axolotl": (
        "{'loss': 1.2, 'memory/max_mem_active(gib)': 18.5, 'memory/max_mem_allocated(gib)': 18.25, "
        "'memory/device_mem_reserved(gib)': 20.0}",
        {"amount": 18.5, "reserved": 20, "level": "allocated"},
    ),
    "torchtune": (
        "Step 5 | loss:1.2 lr:2e-05 peak_memory_active:17.25 peak_memory_alloc:17.0 "
        "peak_memory_reserved:19.5",
        {"amount": 17.25, "reserved": 19.5},
    ),
    "DeepSpeed": (
        "[INFO] [utils.py:782:see_memory_usage] MA 15.0 GB         Max_MA 17.5 GB         CA 18.0 "
        "GB         Max_CA 19 GB",
        {"amount": 17.5, "reserved": 19},
    ),
    "Megatron": (
        "[Rank 0] (after 2 iterations) memory (MB) | allocated: 1024.5 | max allocated: 4096.0 | "
        "reserved: 5000.0 | max reserved: 5120.0",
        {"amount": 4, "reserved": 5},
    ),
    "a print": ("step 3 max_memory_allocated: 2147483648", {"amount": 2}),
    "a print with a unit": ("max_memory_allocated = 2.50 GiB", {"amount": 2.5}),
    "unsloth": ("Peak reserved memory = 7.5 GB.", {"amount": 7.5, "level": "reserved"}),
    "ms-swift": ("{'loss': 0.5, 'memory(GiB)': 23.5, 'speed': 1}", {"amount": 23.5}),
}
EXACT = ("device", "rank", "level", "kind", "at_least")  # of what is read: no sizes in GiB


def bytes_of(value):
    """A size of the table in bytes: small numbers are GiB."""
    return value if value > 1000 or value == 0 else round(value * GiB)
