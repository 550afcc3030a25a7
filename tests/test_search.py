"""What readers type into the search leads to the page that they look for, in each language."""

import pytest
import search_words
from test_pages import SITE, Watched, browser, roots  # noqa: F401

# What to type, and the page that should be first.
ENGLISH = {
    "VRAM": "intro",
    "OOM": "28_choosing",
    "out of memory": "28_choosing",
    "calculator": "calculator",
    "gemma": "calculator",
    "MoE": "12_experts",
    "optimizer": "04_optimizer",
    "optimiser": "04_optimizer",
    "gradient checkpointing": "14_checkpointing",
    "flash attention": "05_activations",
    "vocabulary logits cross entropy": "06_logits",
    "KV cache": "11_kv_cache",
    "vLLM": "13_serving",
    "LoRA": "22_lora",
    "QLoRA": "22_lora",
    "FSDP": "25_sharding",
    "fragmentation": "08_allocator",
    "nvidia-smi": "09_watching",
    "FP8": "20_fp8",
    "gradient accumulation": "15_accumulation",
}
PORTUGUESE = {
    "VRAM": "intro",
    "calculadora": "calculator",
    "otimizador": "04_optimizer",
    "falta de memória": "28_choosing",
    "quantização": "21_quantization",
    "precisão mista": "16_mixed_precision",
    "acumulação de gradientes": "15_accumulation",
    "mistura de especialistas": "12_experts",
    "fragmentação": "08_allocator",
    "ativações": "05_activations",
    "cache KV": "11_kv_cache",
    "poda": "23_pruning",
    "checkpointing de gradiente": "14_checkpointing",
    "OOM": "28_choosing",
}
CHINESE = {
    "顯存": "intro",
    "計算機": "calculator",
    "最佳化器": "04_optimizer",
    "優化器": "04_optimizer",
    "記憶體不足": "28_choosing",
    "量化": "21_quantization",
    "混合精度": "16_mixed_precision",
    "梯度累積": "15_accumulation",
    "混合專家": "12_experts",
    "碎片": "08_allocator",
    "KV 快取": "11_kv_cache",
    "剪枝": "23_pruning",
    "推論": "13_serving",
    "VRAM": "intro",
    "梯度檢查點": "14_checkpointing",
    "OOM": "28_choosing",
    "LoRA": "22_lora",
}
ASKED = {"en": (ENGLISH, 18), "pt-BR": (PORTUGUESE, 13), "zh-TW": (CHINESE, 16)}
# What stands around a text, in any language: it is no excerpt.
AROUND = ("繁體中文", "(Brasil)")
HERE = [language for language in ASKED if (SITE / language).exists()]


@pytest.mark.skipif(not HERE, reason="no book: `make book` builds it")
@pytest.mark.parametrize("language", HERE)
def test_what_readers_type_leads_to_its_page_first(browser, roots, language):  # noqa: F811
    queries, wanted = ASKED[language]
    missed = {}
    with Watched(browser, roots["http"]) as watched:
        for query, page in queries.items():
            watched.page.goto(roots["http"] + f"{language}/search.html?q={query}")
            first = watched.page.locator("ul.search li > a").first
            first.wait_for()
            watched.page.wait_for_selector("p.search-summary")
            found = watched.page.locator("ul.search li > a").first.get_attribute("href") or ""
            if page not in found:
                missed[query] = found
            excerpts = " ".join(watched.page.locator("p.search-summary").all_inner_texts())
            assert excerpts and not any(word in excerpts for word in AROUND), query
        assert watched.wrong == []
    assert len(queries) - len(missed) >= wanted, missed


@pytest.mark.parametrize("language", ASKED)
def test_a_word_leads_to_one_page_that_there_is(language):
    known = search_words.words(language)
    every = [word for found in known.values() for word in found]
    assert len(every) == len(set(every))
    assert all(word == word.lower() for word in every)
    root = search_words.TABLE.parents[2]
    for page in known:
        places = (root / "book" / f"{page}.md", root / "notebooks" / f"{page}.ipynb")
        assert any(place.exists() for place in places), page
