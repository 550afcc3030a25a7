"""`memlab audit`: a list of claims is read, asked and judged; nothing in it is run or obeyed."""

import json
import random
import re
from pathlib import Path

import jsonschema
import pytest

from memlab.cli import answers, main
from memlab.cli.audit import FORM, audited
from memlab.cli.schema import schema
from memlab.files.claim_list import BYTES, CLAIMS, WIDTH, parsed
from memlab.files.figure import figure, share

BOOK = Path(__file__).parent.parent / "book"
WORKED = "book/claims/llama-3.1.md"
ONE = "## It takes 16 GB\n- figure: 16 GB\n- ask: estimate llama-3.1-8b --precision bf16\n"
ONE += "- line: weights\n"
BYTES_8B = 16_060_522_496  # llama-3.1-8b's weights in 16 bits: 8,030,261,248 x 2


def changed(*changes):
    words = ONE
    for old, new in changes:
        assert old in words
        words = words.replace(old, new)
    return words


@pytest.fixture
def card(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(words):
        Path("card.md").write_text(words, encoding="utf-8", newline="")
        return "card.md"

    return write


# What a figure allows ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "right", "wrong"),
    [
        ("16 GB", [15_500_000_000, 16_500_000_000], [15_499_999_999, 16_500_000_001]),
        ("15.62 GiB", [16_777_216_000], [16_777_216_000 + 2**30 // 100]),
        ("0.125 GB", [125_000_000, 125_499_999], [131_072_000, 124_499_999]),
        ("at most 24 GB", [0, 24 * 10**9], [24 * 10**9 + 1]),
        ("at least 2 GiB", [2**31, 2**40], [2**31 - 1]),
        ("15 to 16 GB", [15 * 10**9, 16 * 10**9], [15 * 10**9 - 1, 16 * 10**9 + 1]),
        ("500 MB to 1 GB", [500_000_000, 10**9], [499_999_999, 2**30]),
        ("442,736 tokens", [442_736], [442_737]),
        ("8.03 billion parameters", [8_030_261_248], [8_036_000_000]),
        ("3", [3], [4, 2]),
        ("yes", [True], [False, 1]),
        ("no", [False], [True, 0]),
    ],
)
def test_a_figure_says_as_much_as_its_digits(words, right, wrong):
    one = figure(words)
    assert [one.allows(found) for found in right] == [True] * len(right)
    assert [one.allows(found) for found in wrong] == [False] * len(wrong)


def test_a_share_widens_a_figure_and_a_difference_is_a_share_of_it():
    assert not figure("6.5 GB").allows(6_400_000_000)
    assert figure("6.5 GB").allows(6_400_000_000, share("5 %"))
    assert not figure("6.5 GB").allows(6_100_000_000, share("5%"))
    assert figure("16 GB").difference(BYTES_8B) == "+0.38%"
    assert figure("15 to 15.5 GiB").difference(2**34) == "+3.23%"
    assert figure("4").difference(3) == "−25.00%"
    assert figure("16 GB").in_sister_unit() == figure("16 GiB")
    assert figure("16 GiB").in_sister_unit() is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "is no figure; a figure is 16 GB"),
        ("sixteen", "is no figure"),
        ("-3 GB", "is no figure"),
        ("1,5 GB", "is no figure"),
        ("1e9 B", "unknown unit 'e9 B'|is no figure"),
        ("16 Gb", "unknown unit 'Gb'; known: B, KiB"),
        ("16 GB tokens", "unknown unit 'GB tokens'"),
        ("17 to 16 GB", "is no range"),
        ("3 tokens to 16 GB", "is no range"),
        ("1" * 31, "is no figure"),
        ("١٦ GB", "is no figure"),
    ],
)
def test_what_is_no_figure_is_refused(words, message):
    with pytest.raises(ValueError, match=message):
        figure(words)


@pytest.mark.parametrize("words", ["5", "five %", "51 %", "-1 %", "1.0001 %"])
def test_what_is_no_share_is_refused(words):
    with pytest.raises(ValueError, match="no percentage from 0 % to 50 %"):
        share(words)


# The list ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "x.md: no claim; one begins with a line such as '## It takes 16 GB'"),
        ("# Only a title\n- figure: 16 GB\n", "x.md: no claim"),
        ("## A\n", "x.md:1: the claim has no figure, ask, line; or say why not: '- unchecked"),
        (changed(("- figure: 16 GB\n", "")), "x.md:1: the claim has no figure$"),
        (changed(("- line: weights\n", "")), "x.md:1: the claim has no line; or say why not"),
        (changed(("figure: 16", "figure: about 16")), "x.md:2: 'about 16 GB' is no figure; a fig"),
        (changed(("figure", "size")), "x.md:2: unknown word 'size'; known: figure, ask, line"),
        (ONE + "- no colon\n", "x.md:5: an item is '- figure: 16 GB'; known: figure"),
        (ONE + "- figure: 3 GB\n", "x.md:5: figure again; line 2 says it"),
        (ONE + "- within: much\n", "x.md:5: 'much' is no percentage"),
        (ONE + "- verdict: bad\n", "x.md:5: unknown verdict 'bad'; known: arithmetic slip, unit"),
        (ONE + "- verdict: holds\n", "x.md:5: unknown verdict 'holds'"),
        (ONE + "- reason:\n", "x.md:5: reason says nothing; leave it out"),
        (ONE + "- unchecked: why\n", "x.md:3: ask beside unchecked; leave one out"),
        ("a" * (WIDTH + 1), f"x.md:1: {WIDTH + 1:,} characters; at most {WIDTH:,} in a line"),
        (ONE * (CLAIMS + 1), f"x.md:{4 * CLAIMS + 1}: more than {CLAIMS} claims"),
    ],
)
def test_what_is_wrong_in_a_list_is_named_with_its_line(words, message):
    with pytest.raises(ValueError, match=message):
        parsed(words, "x.md")


def test_a_long_word_goes_on_in_an_indented_line_and_other_text_is_for_readers():
    words = "text\r\n# Title\r\n" + changed(
        ("estimate llama-3.1-8b", "estimate\n  llama-3.1-8b\n    "),
        ("- line: weights", "- line: weights\n\nmore text\n> 8B | 16 GB\n### why\n* reason: sums"),
    )
    found = parsed(words, "x.md")
    assert found.title == "Title" and found.claims[0].place == 3
    assert found.claims[0].ask.split() == ["estimate", "llama-3.1-8b", "--precision", "bf16"]
    assert found.claims[0].reason == "sums" and found.claims[0].figure == figure("16 GB")
    assert parsed(ONE, "folder/x.md").title == "x.md"


def test_a_spoiled_list_is_read_or_refused_and_nothing_else():
    rng, signs = random.Random("a list of claims"), "-#: \n%0G\x00\x1b\u202e'\"\\é"
    ended = {"read": 0, "refused": 0}
    for _ in range(400):
        words = list(FORM)
        for _ in range(rng.choice([1, 1, 3, 30])):
            words[rng.randrange(len(words))] = rng.choice(signs)
        try:
            parsed("".join(words), "x.md")
            ended["read"] += 1
        except ValueError as error:
            assert str(error).startswith("x.md:")
            ended["refused"] += 1
    assert min(ended.values()) > 20


# The verdicts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        ([], "holds", ""),
        ([("figure: 16 GB", "figure: 14.96 GB")], "unit slip", "it is 14.96 GiB"),
        ([("figure: 16 GB", "figure: 8 GB")], "does not hold", ""),
        ([("figure: 16 GB", "figure: 15 GB\n- within: 10 %")], "holds", ""),
        (
            [("figure: 16 GB", "figure: 8 GB\n- verdict: wrong model\n- reason: it is in 8 bits")],
            "wrong model",
            "it is in 8 bits",
        ),
        (
            [("figure: 16 GB", "figure: 48.2 GB"), ("line: weights", "line: total")],
            "does not hold",
            "",  # without the weights or without the gradients: which, nobody can tell
        ),
        (
            [("figure: 16 GB", "figure: 32.1 GB"), ("line: weights", "line: total")],
            "does not hold",
            "without optimizer it would hold",
        ),
    ],
)
def test_a_verdict_follows_from_the_figure(changes, verdict, reason):
    (one,) = audited(parsed(changed(*changes), "x.md"), "x.md")
    assert (one.verdict, one.reason) == (verdict, reason)
    assert isinstance(one.ours, int)


def test_a_verdict_that_the_figure_refutes_is_refused():
    words = ONE + "- verdict: missing term\n"
    with pytest.raises(ValueError, match=r"x.md:1: the verdict is 'missing term', but the figure "):
        audited(parsed(words, "x.md"), "x.md")


@pytest.mark.parametrize(
    ("ask", "line", "posted"),
    [
        ("memlab estimate llama-3.1-8b", "parameters", "8.03 billion parameters"),
        ("estimate tiny-llama --tokens 32", "between steps", "at least 1 MB"),
        ("estimate tiny-llama --tokens 32", "peak of the first step", "at least 1 MB"),
        ("estimate tiny-llama --tokens 32", "allocator.reserved", "at least 1 MB"),
        ("estimate tiny-llama --tokens 32", "rows.activations", "at least 1 kB"),
        ("fit tiny-llama --tokens 32 --on 8GiB", "value", "at least 2 sequences"),
        ("fit tiny-llama --tokens 32 --on 8GiB", "fits", "yes"),
        ("serve tiny-llama --on 'RTX 4090'", "concurrency", "at least 1 requests"),
        ("serve tiny-llama --on 'RTX 4090'", "starts", "yes"),
    ],
)
def test_every_kind_of_line_can_be_asked(ask, line, posted):
    words = changed(
        ("16 GB\n- ask", f"{posted}\n- ask"),
        ("estimate llama-3.1-8b --precision bf16", ask),
        ("weights", line),
    )
    assert [one.verdict for one in audited(parsed(words, "x.md"), "x.md")] == ["holds"]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        ("trace evil.py:build", "cannot be asked from a file; memlab's estimate, fit, serve can"),
        ("watch -- touch touched", "cannot be asked from a file"),
        ("rm -rf /", "cannot be asked from a file"),
        ("audit card.md", "cannot be asked from a file"),
        ("'estimate", "no closing quotation"),
        ("estimate gpt2; touch touched", "unrecognized arguments: touch touched"),
        ("estimate gpt2 --precision bf16 > touched", "unrecognized arguments: > touched"),
        ("estimate $(touch touched)", "unrecognized arguments: touched"),
        ("estimate --help", "asks for help, not for a figure"),
        ("estimate gpt2 --plot touched", "--plot is for a reader at a shell; leave it out"),
        ("estimate gpt2 --against bf16", "--against is for a reader"),
        ("estimate gpt5", "'gpt5' is neither a file nor a preset"),
        (
            "estimate gpt2 --tokens x",
            "x.md:1: argument --tokens: 'x' is not a whole number; see",
        ),
        ("fit gpt2 --tokens 3", "the following arguments are required: --on"),
        ("estimate gpt2", r"x.md:1: 'memlab estimate gpt2' has no line 'weight'; known: weights"),
    ],
)
def test_a_question_that_memlab_does_not_answer_is_refused_and_nothing_is_done(
    ask, message, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    words = changed(
        ("estimate llama-3.1-8b --precision bf16", ask), ("line: weights", "line: weight")
    )
    with pytest.raises(ValueError, match=message):
        audited(parsed(words, "x.md"), "x.md")
    assert list(tmp_path.iterdir()) == [] and capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("posted", "line", "message"),
    [
        ("16 tokens", "weights", "'16 tokens' is a count; the line 'weights' is bytes"),
        ("8B", "parameters", "'8B' is bytes; the line 'parameters' is a count"),
        ("yes", "weights", "'yes' is yes or no; the line 'weights' is bytes"),
    ],
)
def test_bytes_are_not_held_against_counts(posted, line, message):
    words = changed(("16 GB\n- ask", f"{posted}\n- ask"), ("line: weights", f"line: {line}"))
    with pytest.raises(ValueError, match=message):
        audited(parsed(words, "x.md"), "x.md")


def test_one_question_is_answered_once(monkeypatch):
    asked, real = [], answers.answer
    monkeypatch.setattr(answers, "answer", lambda words: asked.append(words) or real(words))
    assert len(audited(parsed(ONE * 5, "x.md"), "x.md")) == 5 and len(asked) == 1


# The shell --------------------------------------------------------------------------------------


def test_the_form_is_a_list_that_holds(card, capsys):
    assert main(["audit", "--form"]) == 0
    words = capsys.readouterr().out
    assert words == FORM
    assert main(["audit", card(words)]) == 0
    assert "4 claims: holds 3, cannot be checked here 1" in capsys.readouterr().out


def test_the_status_says_whether_a_claim_is_wrong(card, capsys):
    wrong = changed(("figure: 16 GB", "figure: 8 GB"))
    assert main(["audit", card(ONE)]) == 0
    assert capsys.readouterr().out.endswith("\n1 claim: holds 1\n")
    assert main(["audit", card(wrong)]) == 1
    assert main(["audit", card(ONE.replace("llama-3.1-8b", "gpt5"))]) == 2
    assert main(["audit", "none.md"]) == 2
    assert main(["audit"]) == 2
    assert main(["audit", card(ONE), "--form"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 4 and all(line.startswith("memlab: ") for line in said)
    assert said[0].startswith("memlab: card.md:1: 'gpt5' is neither") and "none.md" in said[1]


def test_the_document_has_its_schema(card, capsys):
    assert main(["audit", card(FORM + "\n" + changed(("16 GB\n", "8.5 GB\n"))), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, schema("audit"))
    assert found["verdicts"] == {"holds": 3, "cannot be checked here": 1, "does not hold": 1}
    last = found["claims"][-1]
    assert last["ours"] == BYTES_8B and last["difference"] == BYTES_8B - last["posted"]
    assert last["ask"] == "estimate llama-3.1-8b --precision bf16" and last["term"] == "weights"


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path, capsys):
    path = tmp_path / "x.md"
    for words, message in ((b"a" * (BYTES + 1), "more than 1,048,576 bytes"), (b"\xff", "UTF-8")):
        path.write_bytes(words)
        assert main(["audit", str(path)]) == 2
        assert message in capsys.readouterr().err


def test_nothing_in_a_list_moves_a_cursor(card, capsys):
    evil = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m\u2028"
    words = f"# T{evil}\n" + ONE.replace("## It", f"## It{evil}") + f"- reason: r{evil}\n"
    for text, status in (
        (words.replace("figure: 16", "figure: 8"), 1),
        (words.replace("figure: 16", f"figure: 16{evil}"), 2),
        (words.replace("line: weights", f"line: w{evil}"), 2),
        (words.replace("llama-3.1-8b", f"llama{evil}"), 2),
        (words + f"- word{evil}\n", 2),
    ):
        for more in ([], ["--json"]):
            assert main(["audit", card(text), *more]) == status
            out, err = capsys.readouterr()
            assert all(c.isprintable() or c == "\n" for c in out + err)
            if status == 1:
                assert "T\\u001b]0;owned" in out and "It\\u001b]0;owned" in out


# The worked example -----------------------------------------------------------------------------


def test_the_page_shows_what_the_command_prints(capsys, monkeypatch):
    monkeypatch.chdir(BOOK.parent)
    page = (BOOK / "audit.md").read_text(encoding="utf-8")
    assert main(["audit", WORKED]) == 1
    printed = capsys.readouterr().out.rstrip()
    shown = re.search(rf"\$ memlab audit {re.escape(WORKED)}\n(.*?)\n```", page, re.S)
    assert shown and shown[1] == printed
    form = re.search(r"```markdown\n(.*?)```", page, re.S)
    assert form and form[1] in (BOOK.parent / WORKED).read_text(encoding="utf-8")


def test_a_list_cannot_hang_by_a_file_that_it_names(card, tmp_path, capsys):
    slow = {"target_modules": "(.*)*_projX"}
    (tmp_path / "adapter.json").write_text(json.dumps(slow))
    for flags in (f"--adapter {tmp_path}/adapter.json", "--ranks 8 --deepspeed-config /dev/zero"):
        card(
            f"## a\n- figure: 1 GB\n- ask: estimate tiny-llama --tokens 64 {flags}\n- line: total\n"
        )
        assert main(["audit", "card.md"]) == 2
        said = capsys.readouterr().err
        assert "names no linear layer" in said or "/dev/zero is no regular file" in said
