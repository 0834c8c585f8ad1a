"""Where things are: the workspace folder, stores, models, keys. Apart from the filter's settings,
so that those can be shared, exported and put into a link without a secret in them.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field, SecretStr


class Places(BaseModel):
    """What `Deployment` reads. Apart from it, so that the names are known without its package."""

    data_dir: Path = Field(
        Path("workspace"), description="Folder of the store, its copies, journal and labels."
    )
    # URLs may carry credentials, so no repr shows them.
    chroma_url: str = Field(
        "", repr=False, description="URL of a Chroma server; empty uses the folder."
    )
    chroma_timeout_s: float = Field(10.0, gt=0, description="Deadline of one call to that server.")
    database_url: str = Field(
        "",
        repr=False,
        description="SQLAlchemy URL of journal and labels; empty uses SQLite in the folder.",
    )
    embedding_model: str = Field(
        "", description="sentence-transformers name or path; empty uses the bundled MiniLM."
    )
    fetch_models: bool = Field(
        False,
        description="Whether a model that is named and not on this machine is fetched from the "
        "Hugging Face hub when it is first used.",
    )
    user: str = Field("curator", description="Who edits, as the journal records it.")
    openai_api_key: SecretStr = Field(
        SecretStr(""), validation_alias="OPENAI_API_KEY", description="Key of the LLM endpoint."
    )
    openai_base_url: str = Field(
        "",
        repr=False,
        validation_alias="OPENAI_BASE_URL",
        description="Base URL of the LLM endpoint.",
    )
    openai_model: str = Field(
        "gpt-4o-mini", validation_alias="OPENAI_MODEL", description="Model name at the endpoint."
    )
    allowed_hosts: str = Field(
        "",
        description="Names under which the app is served besides 127.0.0.1, localhost and [::1], "
        "separated by commas; any port. A reverse proxy must hand on the Host header it was sent.",
    )
    rule_templates: str = Field(
        "", description="Folder of prompt templates of one's own for drafting rules (.toml)."
    )
    answer_timeout_s: float = Field(60.0, gt=0, description="Deadline of one answer.")
    price_prompt: float = Field(0.0, ge=0, description="Price of a million prompt tokens.")
    price_completion: float = Field(0.0, ge=0, description="Price of a million answer tokens.")

    @property
    def has_llm(self) -> bool:
        """Whether an LLM endpoint is configured: a key, or a base URL (local servers need none)."""
        return bool(self.openai_api_key.get_secret_value() or self.openai_base_url)
