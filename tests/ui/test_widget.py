"""A widget stays while it is used, and is replaced if its value or labels change elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest


def script() -> None:
    import streamlit as st

    from ragfilter.ui.session import widget
    from ragfilter.ui.session.state import KEY, Session

    def choose(name: str) -> None:
        st.session_state.chosen = name
        st.session_state.calls = st.session_state.get("calls", 0) + 1

    st.session_state.setdefault(KEY, Session("full", {}))
    chosen = st.session_state.setdefault("chosen", "owls")
    count = st.session_state.setdefault("count", 1)
    labels = {name: f"{name} · {count}" for name in ("trolls", "owls")}
    st.selectbox(
        "Set",
        list(labels),
        list(labels).index(chosen),
        format_func=labels.__getitem__,
        **widget.key_and_callback("set", chosen, choose, labels=labels),
    )


def box(at: AppTest) -> Any:
    (found,) = at.selectbox
    return found


@pytest.mark.parametrize(
    ("changed", "key", "shown"),
    [({}, "set", "owls"), ({"chosen": "trolls"}, "set--1", "trolls"), ({"count": 2}, "set--1", "owls")],
)
def test_what_changes_elsewhere_comes_in_a_new_widget(changed: dict[str, Any], key: str, shown: str) -> None:
    at = AppTest.from_function(script).run()
    for name, value in changed.items():
        at.session_state[name] = value
    for _ in range(2):
        assert not at.run().exception
        assert (box(at).key, box(at).value) == (key, shown)
        assert not box(at).proto.set_value
    assert at.session_state["chosen"] == shown
    assert "calls" not in at.session_state


def test_using_it_keeps_it() -> None:
    at = AppTest.from_function(script).run()
    for calls, name in enumerate(("trolls", "owls", "trolls"), start=1):
        box(at).set_value(name)
        at.run()
        assert (box(at).key, box(at).value) == ("set", name)
        assert (at.session_state["chosen"], at.session_state["calls"]) == (name, calls)


def test_a_kept_value_that_is_no_longer_offered_gives_way_to_the_default() -> None:
    def kept() -> None:
        import streamlit as st

        from ragfilter.ui.look import elements

        if "put" in st.session_state:
            st.session_state.owl = st.session_state.pop("put")
        st.session_state.chosen = elements.select("Owl", {"barn": "Barn", "tawny": "Tawny"}, "owl")

    at = AppTest.from_function(kept).run()
    box(at).set_value("tawny")
    assert at.run().session_state["chosen"] == "tawny"
    at.session_state["put"] = "eagle"
    assert not at.run().exception
    assert (at.session_state["chosen"], at.session_state["owl"]) == ("barn", "barn")
