"""A model at an OpenAI-compatible endpoint: its name, address and key, checked once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ragfilter.basics.extras import extra
from ragfilter.errors import SettingsError
from ragfilter.text.urls import web_address

with extra("openai"):
    import openai

DEFAULT_BASE_URL = "https://api.openai.com/v1"
NO_KEY = "none"
"""Sent where no key is set: local servers want none, and the client insists on one."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked. The key appears in no message, log line or repr."""

    model: str
    url: str
    key: str = field(repr=False)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def client(self, **options: Any) -> openai.OpenAI:
        """A client that tries once."""
        return openai.OpenAI(
            api_key=self.key or NO_KEY, base_url=self.url, max_retries=0, **options
        )

    def scrub(self, text: str) -> str:
        """`text` without the key."""
        # In any case, since a host's name is in lower case.
        return re.sub(re.escape(self.key), "***", text, flags=re.IGNORECASE) if self.key else text


def read_endpoint(model: str, *, api_key: str, base_url: str) -> Endpoint:
    """The endpoint that these settings name. Raises SettingsError for what cannot be used."""
    if not model.strip():
        raise SettingsError("No model is named.", remedy="Set OPENAI_MODEL.")
    url = base_url.strip() or DEFAULT_BASE_URL
    parts = web_address(url)
    if parts is None:
        raise SettingsError(
            "The base URL of the chat endpoint is not an http or https address.",
            remedy="Set OPENAI_BASE_URL to an address like http://127.0.0.1:8080/v1.",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        # It would be shown in messages and logs.
        raise SettingsError(
            "The base URL of the chat endpoint contains credentials, a query or a fragment.",
            remedy="Put the key into OPENAI_API_KEY and the bare address into OPENAI_BASE_URL.",
        )
    key = api_key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SettingsError(
            "OPENAI_API_KEY contains invalid characters.",
            remedy="Copy OPENAI_API_KEY again, without quotes and line breaks.",
        )
    return Endpoint(model.strip(), url, key)
