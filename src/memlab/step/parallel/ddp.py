"""torch's DDP in a simulated step: each rank has the whole model, and buckets beside it.

Formula     one device's step, and every gradient once more: DDP copies it into a bucket, which is
            averaged over the ranks while backward goes on, and copies the average back
When        from the moment when DDP wraps the model until it goes
Source      torch, torch/csrc/distributed/c10d/reducer.cpp: Reducer::initialize_buckets;
            Li et al. 2020, arXiv:2006.15704
CPU, CUDA   the same buckets on both; tests/test_ddp_steps.py counts them on real ranks
Leaves out  gradient_as_bucket_view=True, which spares the gradients themselves; buffers of NCCL;
            of find_unused_parameters=True, which Trainer says by itself, the map of used
            parameters: 4 bytes for each tensor, on the device and on the host
"""

from __future__ import annotations

from ..core.engine import Engine
from ..core.graph import Tensor
from ..optimizers.each import Each

BUCKETS = "reduce buckets"


def buckets(engine: Engine, each: Each) -> list[Tensor]:
    """What DDP makes of the parameters that have a gradient, in the format of each."""
    return [engine.new("bucket", p.shape, p.dtype, BUCKETS) for p in each()]
