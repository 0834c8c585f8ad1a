"""A capable judge for the advertising API: an OpenAI-protocol behaviour that answers by its labels.

Source: docs/design.md#judge.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from faults import Handler

from ragfilter.ingest import bundled

QUERY_ID = "sd-authenticate"
QUERY = "How do I authenticate with sponsored-display API?"
QRELS = bundled.qrels("adsapi")
RELEVANT = {i for i, label in QRELS[QUERY_ID].items() if label > 0}
BY_TEXT = {text: i for i, text in bundled.queries("adsapi").items()}
SCHEMAS = {"auth-api:TokenRequest", "auth-api:TokenResponse", "auth-api:AuthorizationCodeGrant"}
"""What a client sends and reads to sign in; no search for the question's words finds them."""


@cache
def refs() -> dict[str, Any]:
    return {r.chunk.id: r.chunk.refs for r in bundled.records("adsapi")}


def decide(prompt: str) -> dict[str, str]:
    """Decide by the labels, expanding if a needed chunk (label 2) refers to another one that is not in the prompt."""
    labels = QRELS[BY_TEXT[re.findall(r"^Query: (.*)$", prompt, re.MULTILINE)[0]]]
    asked = re.findall(r"^<chunk>\nid: (.*)$", prompt, re.MULTILINE)
    decisions = {}
    for chunk_id in asked:
        missing = [r for r in refs()[chunk_id] if labels.get(r) == 2 and r not in asked]
        label = labels.get(chunk_id, 0)
        action = "KEEP" if label else "DISCARD"
        decisions[chunk_id] = "EXPAND_3" if label == 2 and missing else action
    return decisions


def capable(handler: Handler, body: dict[str, Any]) -> None:
    decisions = decide(body["messages"][-1]["content"])
    if "response_format" in body:
        items = [{"chunk_id": i, "action": action} for i, action in decisions.items()]
        text = json.dumps({"decisions": items})
    else:
        text = "\n".join(f"{i} -> {action}" for i, action in decisions.items())
    handler.start()
    for start in range(0, len(text), 40):
        handler.piece(text[start : start + 40])
    handler.piece(None, "stop")
    usage = {"prompt_tokens": 1500, "completion_tokens": len(decisions) * 10}
    handler.event({"choices": [], "usage": usage})
    handler.event("[DONE]")
