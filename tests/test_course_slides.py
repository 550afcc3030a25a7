"""The decks of the courses: hours and cells of the schedule, the instructor's page as notes."""

import html
import json
import re
from functools import cache

import courses
import instructors
import pytest
import slides
from decks.course import Course
from decks.deck import SHOWN, code_after, tags_of
from test_slides import READ, ROOMS, TAG, opened, program  # noqa: F401  a fixture

LOOKED_AT = [("en", "90-minutes"), ("zh-TW", "90-minutes")]
HOURS = re.compile(r"\d+:\d\d – \d+:\d\d")


@cache
def deck(name, language="en", folder=None):
    found = slides.notebooks(language, slides.chapters_of(name), folder)
    return Course(slides.ROOT, name, found, slides.translated(language))


def words(parts):
    return html.unescape(TAG.sub("", "\n".join(parts)))


@pytest.mark.parametrize("name", courses.ORDER)
def test_a_course_has_its_parts_in_order_with_their_hours(name):
    course, made = courses.read(slides.ROOT)[name], deck(name)
    parts = [part for session in course["sessions"] for part in session["parts"]]
    hours = []
    for session in course["sessions"]:
        begun, minutes = map(int, course["start"].split(":"))
        clock = 60 * begun + minutes
        for part in session["parts"]:
            end = clock + courses.length(slides.ROOT, part)
            hours.append(f"{courses.clock_of(clock)} – {courses.clock_of(end)}")
            clock = end
    # A part begins with a slide that has its hours: a chapter's first, or one of its own.
    begins = [
        slide
        for slide in made.slides[1:]
        if HOURS.fullmatch(slide.title) or HOURS.search(words(slide.parts[:1]))
    ]
    assert [HOURS.search(slide.title + words(slide.parts))[0] for slide in begins] == hours
    for part, slide in zip(parts, begins, strict=True):
        if "break" in part:
            assert words(slide.parts).strip() == f"Break, {part['break']} minutes."
        elif "chapter" not in part:
            assert slide.title in hours and len(words(slide.parts)) > 20
    assert made.title == course["title"] == made.slides[0].title
    assert all(goal.split("`")[0] in words(made.slides[0].parts) for goal in course["goals"])
    agenda = " ".join(words(slide.parts) for slide in made.slides if "<table>" in slide.parts[0])
    assert all(start.split(" ")[0] in agenda for start in hours)


@pytest.mark.parametrize("name", courses.ORDER)
def test_each_cell_of_the_schedule_is_on_a_slide_and_each_chapter_has_its_notes(name):
    course, made = courses.read(slides.ROOT)[name], deck(name)
    on_slides = set().union(*(slide.cells for slide in made.slides))
    pages = [each for page in instructors.pages(slides.ROOT) for each in instructors.sections(page)]
    said = {chapter: text for *_, chapter, text in pages}
    notes = words(note for slide in made.slides for note in slide.notes)
    shown = words(part for slide in made.slides for part in slide.parts)
    for session in course["sessions"]:
        for part in (part for part in session["parts"] if "chapter" in part):
            asked = {*part.get("show", []), *part.get("run", [])}
            assert asked <= on_slides, (part["chapter"], asked - on_slides)
            section = said[part["chapter"]]
            assert section.count("\n**") == 4 and notes.count("Misconception.") >= 1
            goal = re.findall(r"\*\*Goal\.\*\* (.*)", section)[0]
            assert goal.replace("`", "") in notes
            assert part["what"].replace("`", "").replace("*", "") in notes
            for number in part.get("exercises", []):
                asks = [" ".join(text.split()) for text in asked_whole(part["chapter"], number)]
                assert all(text in " ".join(shown.split()) for text in asks)
                only = part["chapter"] == "one_sheet"
                assert ("Exercise (" if only else f"Exercise {number} (") in shown
    count = sum(len(p.get("exercises", [])) for s in course["sessions"] for p in s["parts"])
    assert len(re.findall(r"Exercise(?: \d)? \(\w+, \d+ min\)\.", shown)) == count
    ids = re.findall(r' id="([^"]+)"', "".join(p for slide in made.slides for p in slide.parts))
    assert len(ids) == len(set(ids))


def asked_whole(chapter, number):
    """What an exercise says to the end, and what the cells above its answer print."""
    path = slides.ROOT / "notebooks" / f"{chapter}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for at, cell in enumerate(cells):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and f"**Exercise {number} (" in text:
            yield re.findall(r"[^`$*]+\Z", text)[0].strip()
            for code in code_after(cells, at):
                if tags_of(code) & SHOWN:
                    yield from ("".join(out.get("text", "")).rstrip() for out in code["outputs"])


@pytest.mark.parametrize(
    ("question", "printed"),
    [
        ("How many bytes of states does the whole matrix have?", "exp_avg_sq: [14336, 4096]"),
        ("How many of them are in the batch?", "out of memory. Tried to allocate"),
        ("How many bytes are reserved, and free inside the segments?", "12 MiB is allocated and"),
    ],
)
def test_what_an_exercise_asks_about_is_on_its_slide(question, printed):
    shown = [words(slide.parts) for slide in deck("half-a-day").slides]
    (only,) = [text for text in shown if question in text]
    assert printed in only.split(question)[1]


def test_a_course_shows_less_than_its_chapters_and_never_skips_the_guesses():
    made = deck("90-minutes")
    shown = words(part for slide in made.slides for part in slide.parts)
    assert shown.count("Predict first.") >= 2 and "Exercise 2 (predict" in shown
    assert "Exercise 4 (compute" not in shown  # of the step: the course has 2 and 3
    whole = sum(len(slides.Deck(one, name).slides) for name, one in chapters("90-minutes"))
    assert 12 < len(made.slides) < whole


def chapters(name):
    for each in sorted(slides.chapters_of(name)):
        path = slides.ROOT / "notebooks" / f"{each}.ipynb"
        yield each, json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    if not (slides.REVEAL / "dist").is_dir():
        pytest.skip("no node: reveal.js is not installed")
    out = tmp_path_factory.mktemp("slides")
    return {
        (language, name): slides.write(
            deck(name, language, tmp_path_factory.mktemp("laid")), language, out
        )
        for language, name in LOOKED_AT
    }


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize(("language", "name"), LOOKED_AT)
def test_all_of_a_course_can_be_read(program, folders, language, name, room):  # noqa: F811
    log: list = []
    page = opened(program, folders[language, name], ROOMS[room], log)
    for at in range(page.evaluate("Reveal.getTotalSlides()")):
        page.evaluate(f"Reveal.slide({at})")
        assert page.evaluate(READ) == [], at + 1
    assert log == []
    page.close()


def test_the_contents_lead_to_a_course_and_an_unknown_one_is_refused(folders, capsys):
    folder = folders["en", "90-minutes"]
    lead = slides.contents("en", folder.parent.parent).read_text(encoding="utf-8")
    assert 'href="90-minutes/index.html">90 minutes<' in lead
    with pytest.raises(SystemExit):
        slides.main(["--course", "90_minutes"])
    assert "'90_minutes' (choose from '90-minutes'" in capsys.readouterr().err
