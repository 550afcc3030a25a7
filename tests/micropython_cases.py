"""Expressions that CPython and MicroPython must answer alike: see test_micropython.

Good and bad input both: the page must refuse in the same words as the book.
"""

from itertools import product

from memlab.formats import names

COUNTS = [0, 1, 3, 1023, 1024, 1536, 3621632, 2**30 - 1, 3 * 2**29, 80 * 10**9, 10**30]
BLOCKS = ["int8/128:bf16", "int4/32:bf16+int4", "nf4/64:fp8_e4m3/256", "int8/row"]

UNITS = [
    *(f"units.{f}({n})" for f, n in product(("text", "exact"), [*COUNTS, -1536, 1.5, True, "'1'"])),
    *(f"units.{f}({n}, decimal=True)" for f, n in product(("text", "exact"), COUNTS)),
    *(f"units.text({n}, digits={d})" for n, d in product(COUNTS, (1, 2, 7))),
    *(
        f"units.parse({words!r})"
        for words in [
            "1.5 GiB",
            "80 GB",
            "3,621,632 B",
            " .5KiB",
            "-1.5 KiB",
            "+2",
            "7",
            "0.001 kB",
        ]
        + ["", "GiB", "1 KB", "one", "1,5 GiB", "0.3 B", "--5", "1e3", "1.2.3"]
    ),
    "units.parse(5)",
    "units.whole('tokens', 5)",
    "units.whole('tokens', -5)",
    "units.whole('tokens', 'five')",
]
FORMATS = [
    "formats.names()",
    *(f"formats.storage({n}, {f!r})" for n, f in product([0, 1, 65, 10**12], [*names(), *BLOCKS])),
    *(f"formats.storage(1280, {f!r}, row=40)" for f in [*names(), *BLOCKS]),
    *(f"formats.{f}({n!r})" for f, n in product(("bits_per_value", "bytes_per_value"), names())),
    *(
        f"formats.format_of({name!r}).{field}"
        for name in [*names(), *BLOCKS]
        for field in ("bits", "block", "scale", "zero", "tensor_bytes", "source", "exponent_bits")
        + ("mantissa_bits", "max_value", "smallest_normal", "epsilon", "name")
    ),
    *(
        f"formats.format_of({name!r})"
        for name in ["torch.bfloat16", "float32", "int8/128:fp32", "fp8", "", "int9/4", "int8/0"]
        + ["int8/", "int8/x", "int8/8:", "int8/8+bf17", "int8/8:int8/row", 8, None]
    ),
    "formats.format_of('nf4') == formats.format_of('nf4')",
    "formats.format_of('nf4') == formats.format_of('int4')",
    "{formats.format_of('bf16'): 1}[formats.format_of('torch.bfloat16')]",
    "formats.storage(10, 'bf16', row=3)",
    "formats.storage(10, 'bf16', row=0)",
    "formats.storage(10, 'int8/row')",
    "formats.storage(-10, 'bf16')",
    "formats.storage(1.5, 'bf16')",
    "formats.bytes_per_value('int8/row', row=512)",
    "formats.bytes_per_value('int8/row')",
]

# Storages by number, as traces have them: splits, joins, another size, both pools, a retry.
TRACE = (
    [("seen", 0, 3 * 2**20), ("alloc", 1, 100), ("alloc", 2, 30 * 2**20), ("alloc", 3, 2**20)]
    + [("free", 0, 0), ("resize", 1, 5 * 2**20), ("alloc", 4, 12 * 2**20), ("free", 2, 0)]
    + [("alloc", 5, 0), ("alloc", 6, 40 * 2**20), ("free", 1, 0), ("free", 4, 0)]
    + [("alloc", 7, 25 * 2**20), ("free", 5, 0)]
)

# At least one call of every public function of memlab.terms; a test sees to that.
TERMS = [
    *(
        f"allocator.{f}({n})"
        for f, n in product(
            ("rounded", "segment_for"),
            (0, 1, 512, 513, 2**20, 2**20 + 1, 10 * 2**20 - 511, 10 * 2**20 + 1, 2**40, -1, 1.5),
        )
    ),
    *(
        f"str(replay.replay({TRACE}, {capacity}, {expandable}){field})"
        for capacity, expandable, field in product(
            (None, 60 * 2**20, 75 * 2**20, 0),
            (False, True),
            ("", ".reserved", ".allocated", ".out_of_memory", ".allocator.retries"),
        )
    ),
    f"replay.replay({TRACE})",
    "replay.replay([('steal', 1, 5)])",
    "replay.replay([('free', 1, 5)])",
    "allocator.CachingAllocator(-1)",
    "allocator.CachingAllocator().malloc(1, 5)",
    "allocator.CachingAllocator(0).malloc(1, 5)",
    *(
        f"activations.{call}{where})"
        for call in (
            "rms_norm(2, 16, 64",
            "layer_norm(2, 16, 64",
            "linear_input(2, 16, 64, 3",
            "attention(2, 16, 4, 2, 8",
            "llama_layer(2, 16, 64, 160, 4, 2, 8",
            "gpt_layer(2, 16, 64, 160, 4, 8",
        )
        for where in ("", ", 'fp32'", ", 'autocast-bf16', 'cuda'", ", 'fp64'", ", 'bf16', 'tpu'")
    ),
    "activations.eager_attention(2, 16, 4, 8)",
    "activations.eager_attention(2, 16, 4, 8, 'autocast-bf16')",
    "activations.feed_forward(2, 16, 160)",
    "activations.feed_forward(2, 16, 160, False, 'fp32')",
    "activations.feed_forward(2, -16, 160)",
    "activations.weight_copies(1000)",
    "activations.weight_copies(1000, 'bf16')",
    "gradients.gradients(1000)",
    "gradients.gradients(1280, 'mxfp8', row=40)",
    "gradients.gradients(-1)",
    "gradients.accumulator(1000, 'bf16')",
    "gradients.accumulator(1000, 'bf17')",
    *(f"gradients.accumulation_transient(1000, {k})" for k in (0, 1, 8, 1.5)),
    "gradients.accumulation_transient(1000, 2, tied=400)",
    "gradients.accumulation_transient(1000, 1, 'bf16', tied=400)",
    *(
        f"optimizer.{name}({shape})"
        for name in ("sgd", "momentum", "adamw", "amsgrad", "adafactor", "lion", "muon")
        for shape in ((), (7,), (64, 96), (2, 3, 5), (0, 4), (-1, 4))
    ),
    "optimizer.adamw((64, 96), 'bf16')",
    *(
        f"optimizer.quantized_adamw({shape}, 'bf16', {kind!r})"
        for shape in ((63,), (128, 33), (64, 96))
        for kind in ("adamw8bit", "adamw4bit", "adamw_fp8")
    ),
    "optimizer.block_state((64, 96), 'int8/256', 'fp32', 1024)",
    "optimizer.block_state((3, 5), 'int8/256')",
    "optimizer.numel((2, 3, 5))",
    "optimizer.numel((2, 3.5))",
    *(
        f"optimizer.state({name!r}, (64, 96), hidden={hidden})"
        for name in ("sgd", "muon", "adamw4bit")
        for hidden in (True, False)
    ),
    "optimizer.state('adamw', (64, 96), formats=('bf16', 'int8/128'))",
    "optimizer.state('adamw', (64, 96), formats=('bf16',))",
    "optimizer.state('adafactor', (64, 96), formats=('bf16',))",
    "optimizer.state('adam', (64, 96))",
    "optimizer.quantized_adamw((63,), 'bf16', 'adamw2bit')",
    "optimizer.learning_rates('adamw8bit', 3)",
    "optimizer.learning_rates('adam')",
    "optimizer.learning_rates('galore/8')",
    *(f"optimizer.state('galore/8', {shape})" for shape in ((64, 96), (96, 64), (7,), (2, 3, 5))),
    "optimizer.state('galore/8', (64, 96), 'bf16', hidden=False)",
    *(
        f"optimizer.state({name!r}, (64, 96))"
        for name in ("galore", "galore/x", "galore/0", "lamb")
    ),
    *(f"low_rank.galore({shape}, {r})" for shape in ((64, 96), (96, 64), (7,)) for r in (0, 8, 99)),
    "low_rank.galore((64, 96), 8, 'bf16')",
    "low_rank.largest_rank((64, 96), 20000)",
    "low_rank.largest_rank((96, 64), 10**9, 'bf16')",
    *(
        f"optimizer_step.low_bit_eager((64, 128), {kind!r}, {format!r})"
        for kind in ("adamw8bit", "adamw4bit", "adamw_fp8", "adamw")
        for format in ("fp32", "bf16")
    ),
    "optimizer_step.low_bit_eager((63, 65))",
    *(
        f"kv_cache.kv_cache(32, 8, 128, 2, 100, {name!r})"
        for name in ("bf16", "fp8_e4m3", "int8/64:bf16", "int4/row:fp16", "fp9")
    ),
    "kv_cache.kv_cache(1, 1, 8, 1, -1)",
    "kv_cache.per_token(126, 8, 128)",
    "kv_cache.per_token(1, 2.0, 8)",
    "kv_cache.static_cache(32, 8, 128, 2, 4096)",
    *(f"kv_cache.windowed_cache((6, None, {w}), 2, 24, 2, 14)" for w in (20, 6, 0, -1)),
    "kv_cache.mla_cache(61, 512, 64, 1, 4096)",
    "kv_cache.mla_cache(1, 512, 64, 1, 1, 'fp8_e4m3/128', 'bf16')",
    *(f"kv_cache.growth(2, 16, 2, 14, {new}, 'fp32')" for new in (0, 1, 14, 15)),
    *(f"kv_cache.pages({tokens})" for tokens in (0, 1, 16, 17)),
    "kv_cache.pages(5, 0)",
    "kv_cache.paged_cache(4, 2, 16, (1, 16, 17, 100))",
    "kv_cache.page_waste(4, 2, 16, (1, 16, 17, 100), 8, 'fp8_e4m3')",
    *(
        f"linear_cross_entropy.{call}"
        for call in (
            "chunk_rows(1024, 8192, 64)",
            "chunk_rows(8192, 128256, 4096, 'bf16')",
            "chunk_rows(1, 64, 8)",
            "reference_peak(32, 128, 'bf16')",
            "forward_peak(12, 64, 8, 5)",
            "forward_peak(12, 64, 8, 5, 'bf16')",
            "forward_peak(12, 64, 8, 13)",
            "forward_peak(12, 4, 8, 5)",
            "backward_peak(12, 64, 8)",
            "backward_peak(12, 64, 8, 'fp16')",
        )
    ),
    *(
        f"loading.{call}"
        for call in (
            *(
                f"moments([40, 8, 8], [20, 4, 8], {w!r}, shard=40{how})"
                for w, how in product(
                    ("copy", "assign", "mmap", "shards", "stream", "lazy"),
                    (
                        "",
                        ", device=True",
                        ", device=True, cast_on_device=True",
                        ", built=[40, 8, 8]",
                        ", cast=True",
                    ),
                )
            ),
            "peak(loading.moments([40, 8], [20, 4], 'mmap'))",
            "peak([])",
            "moments([1], [2, 3], 'copy')",
            "shards([3, 9, 1, 5, 2], 6)",
            "shards([], 6)",
            "shards([3], 0)",
        )
    ),
    "logits.logits(8192, 128256)",
    *(
        f"logits.{function}32, 128, {name!r}, upcast={upcast}, kept={kept})"
        for function in ("copies(", "peak(", "alive('head', ", "alive('nll_backward', ")
        for name, upcast, kept in product(("fp32", "bf16"), (True, False), (True, False))
    ),
    "logits.peak(32, 128, backward=False)",
    "logits.peak(32, -1)",
    "logits.alive('loss', 32, 128)",
    *(f"logits.scalars('bf16', upcast={upcast})" for upcast in (True, False)),
    *(f"logits.labels({batch}, 16, padded={p})" for batch, p in product((1, 2), (True, False))),
    *(f"logits.saved({b}, 16, 128, 'bf16', upcast={u})" for b, u in product((1, 2), (True, False))),
    *(f"logits.chunked_peak(50, 64, 16, {k}, {f!r})" for k in (0, 1, 7) for f in ("fp32", "bf16")),
    *(f"weights.weights(1000, {name!r})" for name in ("bf16", "nf4-dq", "fp8", 16)),
    "weights.linear(1024, 512)",
    "weights.linear(1024, 512, bias=True)",
    "weights.linear(-1, 512)",
    *(f"weights.group_size({n}, {k})" for n, k in ((32, 8), (32, 5), (32, 0), (1, 1), (8.0, 8))),
    "weights.attention(4096, 32, 8, 128)",
    "weights.attention(768, 12, 12, 64, qkv_bias=True, out_bias=True)",
    "weights.attention(768, 12, 5, 64)",
    "weights.feed_forward(4096, 14336, gated=True)",
    "weights.feed_forward(768, 3072, gated=False, bias=True)",
    "weights.norm(4096)",
    "weights.norm(768, bias=True)",
    "weights.embedding(50257, 768)",
    "weights.positions(1024, 768)",
    "weights.positions(2048, 768, offset=2)",
    "weights.value_embedding(65536, 6, 128)",
    *(
        f"fp8.linear(128, 256, 512, {keep!r}, {scaling!r})"
        for keep, scaling in product(("original", "fp8", "fp8+weight", "bf16"), ("tensor", "row"))
    ),
    *(f"fp8.break_even({c}, 512, {s!r})" for c, s in product((256, 4, 0), ("tensor", "row"))),
    *(f"fp8.{f}(256, 'block')" for f in ("scales", "break_even", "weight_copy")),
    "fp8.weight_copy(256, 512)",
    "fp8.linear(-1, 256, 512)",
    *(
        f"fp8.llama_layer(2, 16, 128, 352, 4, 2, 32, {keep!r}, 'row', {shared}, 'cuda')"
        for keep, shared in product(("original", "fp8", "fp8+weight", ""), (True, False))
    ),
    *(f"offloading.pcie({g!r}, {n})" for g, n in ((3, 16), (4, 16), (5, 8), (6, 16), (4, 0))),
    *(f"offloading.microseconds({n}, {b})" for n, b in ((0, 5), (10**12, 31507692307), (-1, 5))),
    "offloading.microseconds(7, 0)",
    "offloading.traffic(saved=10)",
    "offloading.traffic(10, 32)",
    "offloading.traffic_of_host_update(10, 20)",
    *(f"offloading.streamed(32, 100, 7, {ahead})" for ahead in (0, 1, 40, -1)),
    *(
        f"offloading.tokens_to_hide({n}, 10**9, 31507692307, 312 * 10**12, {k})"
        for n, k in ((2 * 10**9, 1), (7, 3), (7, 0))
    ),
    "offloading.tokens_to_hide(7, 10, 0, 5)",
    "checkpointing.segments(32, 5)",
    "checkpointing.segments(32, 0)",
    *(f"checkpointing.kept(2, 16, 64, 160, 4, 2, 8, {k!r})" for k in ("input", "attention", "all")),
    "checkpointing.kept(2, 16, 64, 160, 4, 2, 8, 'matmuls+attention', 4)",
    *(
        f"checkpointing.{f}"
        for f in (
            "held([(2, True), (3, False), (1, True)], 1000, 64)",
            "held([(2, True)], -1, 64)",
            "backward_peak([(2, True), (3, False), (1, True)], 1000, 64, 300, 50, -64)",
            "backward_peak([(1, True)] * 4, 1000, 64, 2000, 50)",
            "backward_peak([], 1000, 64, 300, 50)",
            "room(2, 16, 64, 160)",
            "best_size(126, 20, 1)",
            "best_size(64, 1, 1)",
            "best_size(0, 1, 1)",
            "flops(2, 16, 64, 160, 4, 2, 8)",
            "flops(2, 16, 64, 160, 4, 2, 8, 'attention')",
            "flops(2, 16, 64, 160, 4, 2, 8, 'matmuls')",
            "flops(2, 16, 64, 160, 4, 2, 8, 'everything')",
            "flops_again([(2, True), (3, False), (1, True)], 100, 80)",
        )
    ),
    *(f"sparse.{f}" for f in ("coo(40, 'bf16')", "coo(-1)", "masked(48)", "two_four(64, 128)")),
    *(f"sparse.csr(33, 40, {f!r}, index_bytes={i})" for f in ("fp32", "bf16") for i in (2, 4, 8)),
    "sparse.csr_break_even(512, 256, 'bf16', index_bytes=4)",
    "sparse.csr_break_even(1, 1)",
    "sparse.two_four(64, 128, 'fp32')",
    "sparse.two_four(4, 6)",
    "sparse.masked(48, 'bf16', training=False)",
    *(
        f"sharding.divided({c!r}, {z})"
        for c in ("weights", "gradients", "logits")
        for z in (0, 2, 4)
    ),
    *(
        f"sharding.{f}({n}, {r})"
        for f in ("part", "flat_shard")
        for n in (0, 9, -1)
        for r in (0, 4)
    ),
    *(f"sharding.held(9, 4, {rank})" for rank in (0, 2, 3, 4, -1)),
    *(f"sharding.flat_shard(9, 4, {rank})" for rank in (2, 3)),
    *(f"sharding.row_shard({s}, 4{r})" for s in ((9, 3), (7,), ()) for r in ("", ", 3")),
    "sharding.whole_tensors([3, 9, 1, 5, 2], 2)",
    "sharding.whole_tensors([3], 0)",
    *(f"sharding.split((6, 8), {axis}, 4)" for axis in (0, 1, None)),
    *(f"sharding.stage_layers(10, 4, {s})" for s in (0, 1, 2, 3, 4)),
    "sharding.stage_layers(2, 3, 0)",
    *(f"sharded_step.in_flight({m}, 4, {s})" for m in (0, 2, 8) for s in (0, 3)),
    *(
        f"sharded_step.layer_activations(2, 64, 128, 352, 4, 2, 32, {how})"
        for how in (
            "'bf16'",
            "'fp32', tensor=2",
            "'bf16', 'cuda', tensor=2, sequence=True",
            "'fp32', tensor=2, regather=True, context=2",
            "tensor=4",
            "context=3",
            "tensor=2, sequence=True, context=64",
        )
    ),
    "sharded_step.gathered_kv(2, 64, 2, 32)",
    "sharding.gathered((9, 3), 4)",
    *(f"sharded_step.tensor_wire(1, 64, 128, 4, {r})" for r in (0, 1, 8)),
    *(f"sharded_step.wire(1000, 2000, {r}, {z})" for r in (0, 1, 8) for z in (0, 1, 2, 3, 4)),
    *(f"sharding.check_tensor({t}, 32, 8, 14336)" for t in (0, 3, 8, 16)),
]
