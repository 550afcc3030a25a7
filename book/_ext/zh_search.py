"""Search in Chinese without a dictionary: every ideograph, and every pair of neighbours, is a word.

A browser cannot cut Chinese into words, so the index and the query are both cut the same simple
way; a query of several ideographs is found where all of its pairs are.
"""

import re

from sphinx.search import SearchLanguage

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
RUN = re.compile(f"[{HAN}]+|[^\\W{HAN}]+")

SPLIT = """
function splitQuery(query) {
  const runs = query.match(/[%s]+|[^\\s\\p{P}\\p{S}%s]+/gu) || [];
  return runs.flatMap((run) => {
    if (!/^[%s]/.test(run) || run.length === 1) return [run];
    return Array.from({ length: run.length - 1 }, (_, i) => run.slice(i, i + 2));
  });
}
""" % ((HAN.encode("unicode_escape").decode(),) * 3)


class Ideographs(SearchLanguage):
    lang = "zh_TW"
    language_name = "Chinese, by pairs"
    stopwords: set[str] = set()
    js_stemmer_code = "var Stemmer = function () { this.stemWord = (word) => word; };"
    js_splitter_code = SPLIT

    def init(self, options):
        pass

    def split(self, input):
        words = []
        for run in RUN.findall(input):
            if re.match(f"[{HAN}]", run):
                words += [*run, *(run[i : i + 2] for i in range(len(run) - 1))]
            else:
                words.append(run)
        return words

    def word_filter(self, word):
        return bool(word)

    def stem(self, word):
        return word.lower()


def setup(app):
    app.add_search_language(Ideographs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
