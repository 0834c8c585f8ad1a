"""What the result lacks, as buttons: what each would do, where, and how long it may take."""

from __future__ import annotations

import streamlit as st

from ragfilter.settings import Settings
from ragfilter.types import Need, Result
from ragfilter.ui import figures, state

PER_CHUNK_S = {"late_interaction": 0.02, "cross_encoder": 0.08}
NAMES = {"late_interaction": "late interaction", "cross_encoder": "the cross-encoder"}


def draw(result: Result, *, can_ask_llm: bool, wider: bool) -> None:
    """Buttons for the needs and, where settings outgrew the pool, for asking again."""
    needs = [need for need in result.needs if need.kind != "judge" or can_ask_llm]
    if not needs and not wider:
        return
    with st.container(key="needs", horizontal=True, vertical_alignment="center", gap="small"):
        for need in needs:
            st.button(
                _label(need, result.settings),
                key=f"need-{need.kind}",
                type="primary",
                icon=":material/bolt:",
                on_click=_wish,
                args=(need.kind,),
                help=f"{need.why}. Until then the layer does without.",
            )
        if wider:
            size = result.settings.retrieval.pool_size
            st.button(
                f"Gather again with these settings · pool {figures.count(size)}",
                key="gather-again",
                icon=":material/refresh:",
                on_click=state.renew,
                help="The pool was gathered with other settings; this asks the store once more.",
            )


def _label(need: Need, settings: Settings) -> str:
    n = figures.chunks(len(need.chunk_ids))
    if need.kind == "judge":
        tokens = figures.count(settings.judge.max_prompt_tokens)
        wait = settings.judge.timeout_ms / 1000
        return f"Ask the LLM about {n} · at most {tokens} tokens, {wait:.0f} s"
    reranker = settings.quality.reranker
    time = figures.seconds(len(need.chunk_ids) * PER_CHUNK_S.get(reranker, 0.05))
    return f"Score {n} with {NAMES.get(reranker, reranker)} · {time}, local"


def _wish(kind: str) -> None:
    st.session_state.wish = kind
