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
    *(f"workspaces.cublas_workspaces({major})" for major in (7, 8, 9, 10, 12, 6)),
    "workspaces.cublas_workspaces(8, threads=1, streams=2)",
    *(
        f"allocator.{f}({n})"
        for f, n in product(
            ("rounded", "segment_for"),
            (0, 1, 512, 513, 2**20, 2**20 + 1, 10 * 2**20 - 511, 10 * 2**20 + 1, 2**40, -1, 1.5),
        )
    ),
    *(
        f"str(replay.replay({TRACE}, capacity={capacity}, expandable={expandable}){field})"
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
            "rms_norm(2, tokens=16, width=64",
            "layer_norm(2, tokens=16, width=64",
            "linear_input(2, tokens=16, width=64, readers=3",
            "attention(2, tokens=16, heads=4, kv_heads=2, head_dim=8",
            "llama_layer(2, tokens=16, d_model=64, d_ff=160, heads=4, kv_heads=2, head_dim=8",
            "gpt_layer(2, tokens=16, d_model=64, d_ff=160, heads=4, head_dim=8",
        )
        for where in (
            "",
            ", precision='fp32'",
            ", precision='autocast-bf16', backend='cuda'",
            ", precision='fp64'",
            ", backend='tpu'",
        )
    ),
    "activations.eager_attention(2, tokens=16, heads=4, head_dim=8)",
    "activations.eager_attention(2, tokens=16, heads=4, head_dim=8, precision='autocast-bf16')",
    "activations.feed_forward(2, tokens=16, d_ff=160)",
    "activations.feed_forward(2, tokens=16, d_ff=160, gated=False, precision='fp32')",
    "activations.feed_forward(2, tokens=-16, d_ff=160)",
    *(f"autocast.weight_copies(1000{how})" for how in ("", ", uses=3", ", uses=3, frozen=True")),
    "autocast.weight_copies(-1)",
    "autocast.input_copies(1000, readers=3, format='fp16')",
    *(
        f"dropout.{f}, backend={backend!r})"
        for f in (
            "mask_format('bf16'",
            "mask(1000, format='bf16'",
            "attention_mask(2, tokens=16, heads=4, kernel='flash'",
            "attention_mask(2, tokens=16, heads=4, kernel='eager', format='bf16'",
            "attention_mask(2, tokens=16, heads=4, kernel='math', format='bf16'",
        )
        for backend in ("cpu", "cuda", "tpu")
    ),
    "dropout.attention_mask(2, tokens=16, heads=4, kernel='cudnn')",
    *(f"tied.head(50257, d_model=768, tied={tied})" for tied in (True, False)),
    "tied.spared(50257, d_model=768)",
    "tied.spared(50257, d_model=768, optimizer='muon', states='fp32')",
    *(f"tied.waiting(1000, micro_batches={k})" for k in (0, 1, 8)),
    *(f"host.pinned({n})" for n in (0, 1, 3, 4096, 5 * 2**20, -1, "'1'")),
    *(f"host.paged({n})" for n in (0, 1, 4096, 4097)),
    "host.paged(5, page=0)",
    "gradients.gradients(1000)",
    "gradients.gradients(1280, format='mxfp8', row=40)",
    "gradients.gradients(-1)",
    "gradients.accumulator(1000, format='bf16')",
    "gradients.accumulator(1000, format='bf17')",
    *(f"gradients.accumulation_transient(1000, micro_batches={k})" for k in (0, 1, 8, 1.5)),
    "gradients.accumulation_transient(1000, micro_batches=2, tied=400)",
    "gradients.accumulation_transient(1000, micro_batches=1, format='bf16', tied=400)",
    *(
        f"optimizer.{name}({shape})"
        for name in ("sgd", "momentum", "adamw", "amsgrad", "adafactor", "lion", "muon")
        + (
            "offload_adamw",
            "hf_adafactor",
            "bnb_adamw",
            "bnb_adamw8bit",
            "bnb_paged_adamw",
            "bnb_paged_adamw8bit",
        )
        for shape in ((), (7,), (64, 96), (2, 3, 5), (0, 4), (-1, 4))
    ),
    "optimizer.adamw((64, 96), format='bf16')",
    *(
        f"optimizer.{name}((400, 250))"
        for name in ("bnb_adamw", "bnb_adamw8bit", "bnb_paged_adamw", "bnb_paged_adamw8bit")
    ),
    *(
        f"optimizer.managed({name!r}, shape={shape})"
        for name in ("adamw", "bnb_adamw8bit", "bnb_paged_adamw", "bnb_paged_adamw8bit", "x")
        for shape in ((400, 250), (399, 250))
    ),
    *(
        f"optimizer.quantized_adamw({shape}, format='bf16', kind={kind!r})"
        for shape in ((63,), (128, 33), (64, 96))
        for kind in ("adamw8bit", "adamw4bit", "adamw_fp8")
    ),
    "optimizer.block_state((64, 96), stored='int8/256', format='fp32', table=1024)",
    "optimizer.block_state((3, 5), stored='int8/256')",
    "optimizer.numel((2, 3, 5))",
    "optimizer.numel((2, 3.5))",
    *(
        f"optimizer.state({name!r}, shape=(64, 96), hidden={hidden})"
        for name in ("sgd", "muon", "adamw4bit")
        for hidden in (True, False)
    ),
    "optimizer.state('adamw', shape=(64, 96), formats=('bf16', 'int8/128'))",
    "optimizer.state('adamw', shape=(64, 96), formats=('bf16',))",
    "optimizer.state('adafactor', shape=(64, 96), formats=('bf16',))",
    "optimizer.state('adam', shape=(64, 96))",
    "optimizer.quantized_adamw((63,), format='bf16', kind='adamw2bit')",
    "optimizer.learning_rates('adamw8bit', groups=3)",
    "optimizer.learning_rates('adam')",
    "optimizer.learning_rates('galore/8')",
    *(
        f"optimizer.state('galore/8', shape={shape})"
        for shape in ((64, 96), (96, 64), (7,), (2, 3, 5))
    ),
    "optimizer.state('galore/8', shape=(64, 96), format='bf16', hidden=False)",
    *(
        f"optimizer.state({name!r}, shape=(64, 96))"
        for name in ("galore", "galore/x", "galore/0", "lamb")
    ),
    *(
        f"low_rank.galore({shape}, rank={r})"
        for shape in ((64, 96), (96, 64), (7,))
        for r in (0, 8, 99)
    ),
    "low_rank.galore((64, 96), rank=8, format='bf16')",
    "low_rank.largest_rank((64, 96), bytes=20000)",
    "low_rank.largest_rank((96, 64), bytes=10**9, format='bf16')",
    *(
        f"optimizer_step.low_bit_eager((64, 128), kind={kind!r}, format={format!r})"
        for kind in ("adamw8bit", "adamw4bit", "adamw_fp8", "adamw")
        for format in ("fp32", "bf16")
    ),
    "optimizer_step.low_bit_eager((63, 65))",
    *(
        f"optimizer_step.low_bit_compiled({shape}, kind={kind!r})"
        for kind in ("adamw8bit", "adamw4bit", "adamw_fp8", "adamw")
        for shape in ((64, 128), (63, 65))
    ),
    *(
        f"optimizer_step.low_bit_room({shape}, kind='adamw4bit', format='bf16', compiled={yes})"
        for shape in ((64, 128), (63, 65))
        for yes in (True, False)
    ),
    *(
        f"optimizer_step.step_room({name!r}, [((64, 96), True), ((96,), False)], loop={loop!r})"
        for name in ("adamw", "sgd", "lion", "muon", "adafactor", "adamw8bit", "hf_adafactor")
        + ("muon8", "galore/8", "bnb_adamw")
        for loop in ("foreach", "fused", "compiled")
    ),
    *(f"optimizer.shared_state({name!r})" for name in ("adamw", "adamw8bit", "bnb_adamw8bit", "x")),
    *(
        f"kv_cache.kv_cache(32, kv_heads=8, head_dim=128, batch=2, tokens=100, format={name!r})"
        for name in ("bf16", "fp8_e4m3", "int8/64:bf16", "int4/row:fp16", "fp9")
    ),
    "kv_cache.kv_cache(1, kv_heads=1, head_dim=8, batch=1, tokens=-1)",
    "recurrent.state(64, heads=80, head_dim=64, state_dim=128, batch=3)",
    "recurrent.state(1, heads=-1, head_dim=64, state_dim=128, batch=3)",
    "recurrent.convolution(64, channels=5376, kernel=4, batch=3, format='fp32')",
    "recurrent.convolution(64, channels=5376, kernel=4, batch=3, format='fp5')",
    "experts.expert(4096, expert_ff=1536)",
    "experts.expert(2880, expert_ff=2880, bias=True)",
    "experts.mixture(4096, experts=128, expert_ff=1536)",
    "experts.mixture(64, experts=4, expert_ff=8, shared_ff=16, shared_gated=True)",
    "experts.active(4096, experts=128, experts_per_token=8, expert_ff=1536)",
    "experts.active(64, experts=4, experts_per_token=5, expert_ff=8)",
    "experts.active_part(64, experts_per_token=2, expert_ff=8, shared_ff=0, shared_gated=False)",
    "experts.permuted(4096, d_model=2048, experts_per_token=8, format='fp32')",
    *(
        f"experts.kept(4096, d_model=2048, experts=64, experts_per_token=8, expert_ff=1024{more})"
        for more in ("", ", format='fp32'", ", scores='fp32', normalized=True", ", format='x'")
    ),
    *(
        f"experts.arriving(4096, experts={x}, experts_per_token=8, ranks={e}, even={even})"
        for x, e, even in ((128, 8, True), (128, 8, False), (64, 16, False), (128, 3, True))
    ),
    *(
        "experts.kept_divided(4096, d_model=2048, experts=128, experts_per_token=8, expert_ff=768, "
        f"ranks={e}, rows={rows}{more})"
        for e, rows, more in ((8, 32768, ""), (4, 0, ", format='fp32'"), (8, -1, ""), (3, 9, ""))
    ),
    *(
        f"divided_text.saved(1, tokens={t}, heads=8, kv_heads=4, head_dim=16, ranks={c})"
        for t, c in ((64, 2), (64, 1), (64, 3), (-64, 2), (64, 0))
    ),
    *(
        f"divided_text.{f}(2, tokens=64, heads=8, kv_heads=4, head_dim=16, ranks={c}, way={way!r})"
        for f in ("buffers", "sent")
        for c, way in ((4, "gathered"), (4, "ring"), (4, "ulysses"), (8, "ulysses"), (2, "torus"))
    ),
    "kv_cache.per_token(126, kv_heads=8, head_dim=128)",
    "kv_cache.per_token(1, kv_heads=2.0, head_dim=8)",
    "kv_cache.static_cache(32, kv_heads=8, head_dim=128, batch=2, longest=4096)",
    *(
        f"kv_cache.windowed_cache((6, None, {w}), kv_heads=2, head_dim=24, batch=2, tokens=14)"
        for w in (20, 6, 0, -1)
    ),
    *(
        f"kv_cache.shared_cache((6, None, 6), shared={n}, kv_heads=2, head_dim=24, batch=2, "
        "tokens=14)"
        for n in (0, 1, 2, 3, -1)
    ),
    *(
        f"weights.latent_attention(7168, heads=128, q_latent={q}, kv_latent=512, nope_dim=128, "
        "rope_dim=64, v_dim=128)"
        for q in (1536, 0, -1)
    ),
    "kv_cache.mla_cache(61, latent=512, rope=64, batch=1, tokens=4096)",
    "kv_cache.mla_cache(1, latent=512, rope=64, batch=1, tokens=1, "
    "format='fp8_e4m3/128', rope_format='bf16')",
    *(
        f"kv_cache.growth(2, head_dim=16, batch=2, tokens=14, new={new}, format='fp32')"
        for new in (0, 1, 14, 15)
    ),
    *(f"kv_cache.pages({tokens})" for tokens in (0, 1, 16, 17)),
    "kv_cache.pages(5, block=0)",
    "kv_cache.paged_cache(4, kv_heads=2, head_dim=16, lengths=(1, 16, 17, 100))",
    "kv_cache.paged_cache(4, kv_heads=2, head_dim=16, lengths=(1, 16, 17, 100), "
    "block=8, format='fp8_e4m3')",
    *(
        f"linear_cross_entropy.{call}"
        for call in (
            "chunk_rows(1024, vocab=8192, d_model=64)",
            "chunk_rows(8192, vocab=128256, d_model=4096, format='bf16')",
            "liger_rows(4096, vocab=151936, d_model=1024)",
            "chunk_rows(1, vocab=64, d_model=8, backend='cuda')",
            "reference_peak(32, vocab=128, format='bf16')",
            "forward_peak(12, vocab=64, d_model=8, chunk=5)",
            "forward_peak(12, vocab=64, d_model=8, chunk=5, format='bf16')",
            "forward_peak(12, vocab=64, d_model=8, chunk=13)",
            "forward_peak(12, vocab=4, d_model=8, chunk=5)",
            "backward_peak(12, vocab=64, d_model=8)",
            "backward_peak(12, vocab=64, d_model=8, format='fp16')",
        )
    ),
    *(
        f"loading.{call}"
        for call in (
            *(
                f"moments([40, 8, 8], new=[20, 4, 8], way={w!r}, shard=40{how})"
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
            "peak(loading.moments([40, 8], new=[20, 4], way='mmap'))",
            "peak([])",
            "moments([1], new=[2, 3], way='copy')",
            "shards([3, 9, 1, 5, 2], limit=6)",
            "shards([], limit=6)",
            "shards([3], limit=0)",
        )
    ),
    "logits.logits(8192, vocab=128256)",
    *(
        f"logits.{function}32, vocab=128, format={name!r}, upcast={upcast}, kept={kept})"
        for function in ("copies(", "peak(", "alive('head', rows=", "alive('nll_backward', rows=")
        for name, upcast, kept in product(("fp32", "bf16"), (True, False), (True, False))
    ),
    "logits.peak(32, vocab=128, backward=False)",
    "logits.peak(32, vocab=-1)",
    "logits.alive('loss', rows=32, vocab=128)",
    *(f"logits.scalars('bf16', upcast={upcast})" for upcast in (True, False)),
    *(
        f"logits.labels({batch}, tokens=16, padded={p})"
        for batch, p in product((1, 2), (True, False))
    ),
    *(
        f"logits.saved({b}, tokens=16, vocab=128, format='bf16', upcast={u})"
        for b, u in product((1, 2), (True, False))
    ),
    *(
        f"logits.chunked_peak(50, vocab=64, d_model=16, chunks={k}, format={f!r})"
        for k in (0, 1, 7)
        for f in ("fp32", "bf16")
    ),
    *(f"weights.weights(1000, format={name!r})" for name in ("bf16", "nf4-dq", "fp8", 16)),
    "weights.linear(1024, outputs=512)",
    "weights.linear(1024, outputs=512, bias=True)",
    "weights.linear(-1, outputs=512)",
    *(
        f"weights.group_size({n}, kv_heads={k})"
        for n, k in ((32, 8), (32, 5), (32, 0), (1, 1), (8.0, 8))
    ),
    "weights.attention(4096, heads=32, kv_heads=8, head_dim=128)",
    "weights.attention(768, heads=12, kv_heads=12, head_dim=64, qkv_bias=True, out_bias=True)",
    "weights.attention(768, heads=12, kv_heads=5, head_dim=64)",
    "weights.feed_forward(4096, d_ff=14336, gated=True)",
    "weights.feed_forward(768, d_ff=3072, gated=False, bias=True)",
    "weights.norm(4096)",
    "weights.norm(768, bias=True)",
    "weights.embedding(50257, d_model=768)",
    "weights.positions(1024, d_model=768)",
    "weights.positions(2048, d_model=768, offset=2)",
    "weights.value_embedding(65536, kv_heads=6, head_dim=128)",
    *(
        f"fp8.linear(128, inputs=256, outputs=512, keep={keep!r}, scaling={scaling!r})"
        for keep, scaling in product(("original", "fp8", "fp8+weight", "bf16"), ("tensor", "row"))
    ),
    *(
        f"fp8.break_even({c}, outputs=512, scaling={s!r})"
        for c, s in product((256, 4, 0), ("tensor", "row"))
    ),
    *(f"fp8.{f}, scaling='block')" for f in ("scales(256", "break_even(256, outputs=4")),
    "fp8.weight_copy(256, outputs=512)",
    "fp8.weight_copy(256, outputs='block')",
    "fp8.linear(-1, inputs=256, outputs=512)",
    *(
        "fp8.llama_layer(2, tokens=16, d_model=128, d_ff=352, heads=4, kv_heads=2, "
        f"head_dim=32, keep={keep!r}, scaling='row', shared={shared}, backend='cuda')"
        for keep, shared in product(("original", "fp8", "fp8+weight", ""), (True, False))
    ),
    *(f"offloading.pcie({g!r}, lanes={n})" for g, n in ((3, 16), (4, 16), (5, 8), (6, 16), (4, 0))),
    *(
        f"offloading.microseconds({n}, bandwidth={b})"
        for n, b in ((0, 5), (10**12, 31507692307), (-1, 5))
    ),
    "offloading.microseconds(7, bandwidth=0)",
    "offloading.traffic(saved=10)",
    "offloading.traffic(10, states=32)",
    "offloading.traffic_of_host_update(10, weights=20)",
    *(f"offloading.streamed(32, layer=100, rest=7, ahead={ahead})" for ahead in (0, 1, 40, -1)),
    *(
        f"offloading.tokens_to_hide({n}, parameters=10**9, bandwidth=31507692307, "
        f"flops=312 * 10**12, passes={k})"
        for n, k in ((2 * 10**9, 1), (7, 3), (7, 0))
    ),
    "offloading.tokens_to_hide(7, parameters=10, bandwidth=0, flops=5)",
    "checkpointing.segments(32, size=5)",
    "checkpointing.segments(32, size=0)",
    *(
        "checkpointing.kept(2, tokens=16, d_model=64, d_ff=160, heads=4, kv_heads=2, "
        f"head_dim=8, keep={k!r})"
        for k in ("input", "attention", "all")
    ),
    "checkpointing.kept(2, tokens=16, d_model=64, d_ff=160, heads=4, kv_heads=2, "
    "head_dim=8, keep='matmuls+attention', value_bytes=4)",
    *(
        f"checkpointing.{f}"
        for f in (
            "held([(2, True), (3, False), (1, True)], block=1000, kept=64)",
            "held([(2, True)], block=-1, kept=64)",
            "backward_peak([(2, True), (3, False), (1, True)], block=1000, kept=64, "
            "gradient=300, room=50, extra=-64)",
            "backward_peak([(1, True)] * 4, block=1000, kept=64, gradient=2000, room=50)",
            "backward_peak([], block=1000, kept=64, gradient=300, room=50)",
            "room(2, tokens=16, d_model=64, d_ff=160)",
            "best_size(126, block=20, input=1)",
            "best_size(64, block=1, input=1)",
            "best_size(0, block=1, input=1)",
            "flops(2, tokens=16, d_model=64, d_ff=160, heads=4, kv_heads=2, head_dim=8)",
            "flops(2, tokens=16, d_model=64, d_ff=160, heads=4, kv_heads=2, head_dim=8, "
            "keep='attention')",
            "flops(2, tokens=16, d_model=64, d_ff=160, heads=4, kv_heads=2, head_dim=8, "
            "keep='matmuls')",
            "flops(2, tokens=16, d_model=64, d_ff=160, heads=4, kv_heads=2, head_dim=8, "
            "keep='everything')",
            "flops_again([(2, True), (3, False), (1, True)], forward=100, again=80)",
        )
    ),
    *(
        f"sparse.{f}"
        for f in ("coo(40, format='bf16')", "coo(-1)", "masked(48)", "two_four(64, columns=128)")
    ),
    *(
        f"sparse.csr(33, nonzero=40, format={f!r}, index_bytes={i})"
        for f in ("fp32", "bf16")
        for i in (2, 4, 8)
    ),
    "sparse.csr_break_even(512, columns=256, format='bf16', index_bytes=4)",
    "sparse.csr_break_even(1, columns=1)",
    "sparse.two_four(64, columns=128, format='fp32')",
    "sparse.two_four(4, columns=6)",
    "sparse.masked(48, format='bf16', training=False)",
    *(
        f"sharding.divided({c!r}, zero={z})"
        for c in ("weights", "gradients", "logits")
        for z in (0, 2, 4)
    ),
    *(
        f"sharding.{f}({n}, ranks={r})"
        for f in ("part", "flat_shard")
        for n in (0, 9, -1)
        for r in (0, 4)
    ),
    *(f"sharding.held(9, ranks=4, rank={rank})" for rank in (0, 2, 3, 4, -1)),
    *(f"sharding.flat_shard(9, ranks=4, rank={rank})" for rank in (2, 3)),
    *(f"sharding.row_shard({s}, ranks=4{r})" for s in ((9, 3), (7,), ()) for r in ("", ", rank=3")),
    "sharding.whole_tensors([3, 9, 1, 5, 2], ranks=2)",
    "sharding.whole_tensors([3], ranks=0)",
    *(f"sharding.split((6, 8), axis={axis}, ranks=4)" for axis in (0, 1, None)),
    *(f"sharding.stage_layers(10, stages=4, stage={s})" for s in (0, 1, 2, 3, 4)),
    "sharding.stage_layers(2, stages=3, stage=0)",
    *(f"sharded_step.in_flight({m}, stages=4, stage={s})" for m in (0, 2, 8) for s in (0, 3)),
    *(
        f"sharded_step.in_flight(8, stages=4, stage=1, schedule={schedule!r}, each={each})"
        for schedule, each in (("gpipe", 1), ("interleaved1f1b", 2), ("interleaved1f1b", 0))
    ),
    "sharded_step.in_flight(8, stages=4, stage=1, schedule='zb')",
    *(
        "sharded_step.stage_buffers(1, tokens=64, d_model=128, micro_batches=8, stages=3, "
        f"stage={s})"
        for s in (0, 1, 2, 3)
    ),
    *(
        "sharded_step.layer_activations(2, tokens=64, d_model=128, d_ff=352, heads=4, kv_heads=2, "
        f"head_dim=32, {how})"
        for how in (
            "precision='bf16'",
            "precision='fp32', tensor=2",
            "backend='cuda', tensor=2, sequence=True",
            "precision='fp32', tensor=2, regather=True, context=2",
            "tensor=4",
            "context=3",
            "tensor=2, sequence=True, context=64",
        )
    ),
    "sharded_step.gathered_kv(2, tokens=64, kv_heads=2, head_dim=32)",
    *(f"engine_pool.budget(85899345920, utilization={u})" for u in (0.9, 1, 0, 1.5, "'a'", True)),
    *(f"engine_pool.rank_heads({k}, ranks={r})" for k, r in ((8, 2), (4, 8), (1, 1), (8, 3))),
    "engine_pool.forward_peak(8192, d_model=4096, wide=43008)",
    *(
        f"engine_pool.sampler_peak({rows}, vocab=128256, sort={sort})"
        for rows, sort in ((256, True), (127, True), (1024, False), (-1, False))
    ),
    *(f"engine_pool.blocks(57220000000, page=65536, layers={n})" for n in (32, 0)),
    *(f"engine_pool.groups({a}, {b})" for a, b in ((32, 0), (5, 26), (12, 13), (0, 0))),
    *(f"engine_pool.request_blocks(8192{more})" for more in ("", ", window=128, chunk=2048")),
    "engine_pool.request_blocks(100, window=0)",
    "engine_pool.request_blocks(100, block=0)",
    *(f"engine_pool.sequences(27288, tokens=8192, prefix={p})" for p in (0, 4000, 8192)),
    "engine_pool.SOURCES",
    *(
        f"packed.{function}(576, inputs=7168, format={kind!r}{more})"
        for function in ("packed", "parts")
        for kind in ("gptq", "awq", "fp8", "fp8-block", "mxfp4", "nf4", "nf4-dq", "q4_k_m")
        for more in ("", ", group=64", ", group=-1")
    ),
    "packed.packed(-1, inputs=2, format='awq')",
    *(
        f"chunk_rows.chunk_rows({n}, vocab=128256, d_model=4096, format={kind!r}, backend={on!r})"
        for n in (0, 7, 8192)
        for kind in ("fp32", "bf16", "fp16")
        for on in ("cpu", "cuda")
    ),
    *(f"chunk_rows.liger_rows({rows}, vocab=128256, d_model=4096)" for rows in (1, 8192, -1)),
    "sharding.gathered((9, 3), ranks=4)",
    *(f"sharding.at_least_one('ranks', {n})" for n in (4, 0, -1, 2.5)),
    "lora.linear_layers(model.Model.preset('gpt2'))['qkv'].count",
    "lora.coded_layers(model.Model.preset('gpt2'))['qkv'].count",
    "lora.beside(model.Model.preset('qwen3-30b-a3b'))['experts_up'].count",
    "expert_lora.written_out(lora.Lora(4, ('router',)), "
    "model.Model.preset('qwen3-30b-a3b'), 'bf16')",
    *(
        f"sharded_step.tensor_wire(1, tokens=64, d_model=128, layers=4, ranks={r})"
        for r in (0, 1, 8)
    ),
    *(
        f"sharded_step.wire(1000, gradients=2000, ranks={r}, zero={z})"
        for r in (0, 1, 8)
        for z in (0, 1, 2, 3, 4)
    ),
    *(f"sharding.check_tensor({t}, heads=32, kv_heads=8, d_ff=14336)" for t in (0, 3, 8, 16)),
]
LLAMA = "model.Model.preset('llama-3-8b')"
RUNS = [
    *(
        f"sorted(run.Run({said}).said().items())"
        for said in (
            "",
            "tokens=4096, batch=2",
            "attention='eager', checkpoint='block', loss='chunked'",
            "dropout=0, frozen=['embedding'], holds=('graph',)",
            "phase='decode', tokens=7",
            "batch=0",
            "tokens=1",
            "tokens=3, loss='chunked'",
            "tokens=2.5",
            "micro_batches=5000",
            "dropout=1",
            "attention='fast'",
            "holds='graph'",
            "holds=('nothing',)",
            "step_in_backward=1",
            "step_in_backward=True, micro_batches=2",
            "phase='prefill'",
            "phase='prefill', tokens=8, loss='chunked'",
            "offload=('states',)",
            "offload=('optimizer',), step_in_backward=True",
            "offload=('gradients',)",
            "loss_chunks=3",
        )
    ),
    "run.Run.cpu(tokens=8).optimizer_loop",
    "run.Run().optimizer_loop",
    "run.Run(loss='chunked', tokens=64).chunks",
    "run.Run(batch=3, tokens=5).rows",
    "run.Run(batch=2) == run.Run(batch=2)",
    "hash(run.Run(batch=2)) == hash(run.Run(batch=2))",
    "{run.Run(batch=2): 7}[run.Run().replace(batch=2)]",
    "run.Run.from_json(run.Run(tokens=5, lora=lora.Lora(4)).to_json()).lora.rank",
    "run.Run.from_dict({'batches': 2})",
    "run.Run.from_dict({'devices': {'data': 4}}).devices.ranks",
    "lora.Lora(0)",
    f"others.Ia3().parameter_count({LLAMA})",
    f"others.Ia3(('q', 'up'), ()).parameter_count({LLAMA})",
    "others.Ia3(('q',), ('down',))",
    f"others.Vera(8, ('q', 'down')).parameter_count({LLAMA})",
    f"others.Vera(8, ('q', 'down')).shared({LLAMA})",
    f"others.Prompt(20).parameter_count({LLAMA})",
    "run.Run.from_json(run.Run(tokens=5, adapter=others.Vera(4)).to_json()).adapter.rank",
    "run.Run(tokens=5, lora=lora.Lora(4), adapter=others.Prompt(4))",
    "lora.Lora(16, 'q')",
    f"lora.Lora(16).parameter_count({LLAMA})",
    f"lora.Lora(16, ranks=(('q', 4),)).parameter_count({LLAMA})",
    f"lora.Lora(16, ('k', 'down'), dora=True).parameter_count({LLAMA})",
    f"lora.Lora(16, saved=('embedding', 'lm_head')).saved_count({LLAMA})",
    f"lora.Lora(16, base='nf4').level_bytes({LLAMA})",
    "lora.Lora(16).format('bf16', peft=True)",
    "lora.Lora(16, dtype='fp16').format('bf16', peft=True)",
    f"lora.Lora(16, base='nf4').base_bytes({LLAMA}, 'bf16')",
    f"lora.Lora(16, ('q', 'qkv')).check({LLAMA})",
    f"recipe_choice.recipe_for({LLAMA}).weights",
    f"recipe_choice.recipe_for({LLAMA}, 'autocast-bf16').autocast",
    f"recipe_choice.recipe_for({LLAMA}.replace(config={{'dtype': 'float64'}}))",
    f"recipe_choice.tied_as({LLAMA}, recipe.Recipe(tie=True)).parameter_count",
    "sorted(changes.CHANGES[3].turn(recipe.Recipe(), run.Run(tokens=64))[1].said())",
    "[c.turn(recipe.Recipe(optimizer='lion'), run.Run())[0].optimizer for c in changes.CHANGES]",
    *(
        "changes.cheapest(lambda recipe, run: run.batch * 64 - 8 * (run.loss == 'chunked'),"
        f" recipe.Recipe(), run.Run(batch=8, tokens=64), {limit}, changes.CHANGES).steps"
        for limit in (512, 505, 300, 63, 10)
    ),
]
