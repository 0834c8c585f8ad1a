"""Answers as Markdown, read by a real parser: nothing is fetched, quotations stay to the letter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ragfilter.ui.prose import quoted, written

READER = MarkdownIt("gfm-like", {"linkify": False, "html": False})
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
    """What the text is made of, as a Markdown reader sees it."""
    tokens = READER.parse(markdown)
    return {t.type for t in tokens} | {c.type for t in tokens for c in t.children or ()}


def words(markdown: str) -> str:
    """The text without its form."""
    tokens = READER.parse(markdown)
    return "".join(c.content or "\n" for t in tokens for c in t.children or () if not c.tag[1:2])


@pytest.mark.parametrize("text", FETCHES)
def test_no_picture_and_no_link_is_left(text: str) -> None:
    assert kinds(text) & {"image", "link_open"}
    assert not kinds(written(text)) & {"image", "link_open"}
    assert not kinds(quoted(text)) & {"image", "link_open"}


@given(st.text(alphabet="![]()<>:\\\"' \nax1`*_~", max_size=40), st.sampled_from(FETCHES))
def test_no_text_around_it_brings_it_back(text: str, fetch: str) -> None:
    for whole in (text + fetch, fetch + text, text + fetch + text):
        assert "image" not in kinds(written(whole))
        assert not kinds(quoted(whole)) & {"image", "link_open"}


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


@pytest.mark.parametrize(
    "text",
    [
        "# Not a heading",
        "1. not a list",
        "- nor this",
        "a | b\n--|--\n1 | 2",
        "*not* _so_ `much` ~~form~~ $x$ :red[y] :smile: &amp; <b>",
        "Level 7-9: 10; AC −3.",
    ],
)
def test_a_quotation_stays_to_the_letter(text: str) -> None:
    assert kinds(quoted(text)) <= {
        "paragraph_open",
        "paragraph_close",
        "inline",
        "text",
        "softbreak",
        "text_special",
    }
    assert "".join(words(quoted(text)).split()) == "".join(text.split())
