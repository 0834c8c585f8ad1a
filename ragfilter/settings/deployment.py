"""Reads from the environment where things are: stores, models, keys."""

from __future__ import annotations

from ragfilter.basics.extras import extra
from ragfilter.settings.environment import Places

with extra("chroma"):
    from pydantic_settings import BaseSettings, SettingsConfigDict


class Deployment(BaseSettings, Places):
    """Read from the environment (``RAGFILTER_DATA_DIR`` …); the OpenAI names are the usual ones."""

    model_config = SettingsConfigDict(
        env_prefix="RAGFILTER_",
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        hide_input_in_errors=True,
    )
