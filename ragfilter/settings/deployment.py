"""Where things are: workspace, stores, models, keys. Apart from the settings, which can be shared without a secret."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from ragfilter.errors import SettingsError, complaint

PREFIX = "RAGFILTER_"


class Deployment(BaseModel):
    """Read from the environment (``RAGFILTER_DATA_DIR`` …, the usual names for OpenAI), unless values are passed."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", populate_by_name=True, hide_input_in_errors=True, use_attribute_docstrings=True
    )

    data_dir: Path = Path("workspace")
    """Folder that holds the store, its copies, the journal and labels."""
    # URLs may contain credentials, so no repr shows them.
    workspace: str = Field("", repr=False)
    """The same, or a PostgreSQL database: `postgresql://user@host/database`."""
    chroma_url: str = Field("", repr=False)
    """URL of a Chroma server. Empty uses the folder."""
    chroma_timeout_s: float = Field(10.0, gt=0)
    """Timeout of one call to that server, in seconds."""
    qdrant_url: str = Field("", repr=False)
    """URL of a Qdrant server, or a folder for few chunks."""
    qdrant_key: SecretStr = SecretStr("")
    """API key of that server."""
    database_url: str = Field("", repr=False)
    """SQLAlchemy URL of the journal and labels. Empty uses SQLite in the folder."""
    embedding_model: str = ""
    """sentence-transformers name or path, or openai:NAME for embeddings from the LLM's endpoint.
    Empty uses the bundled MiniLM."""
    catalogue_limit: int = Field(1_000_000, ge=0)
    """Largest collection, in chunks, whose rules and clearances are all kept in memory for searches, about 0.5 KB each.
    In larger ones, the store checks clearance in every search, and rules are read with the hits."""
    fetch_models: bool = False
    """Whether to download a named model from the Hugging Face Hub if it is not on this machine when first used."""
    max_upload_mb: int = Field(200, gt=0)
    """Maximum size of one upload on the Collections page, after unpacking, in MB."""
    user: str = "curator"
    """Name recorded with labels and rule edits. Visitors of the app can give their own."""
    openai_api_key: SecretStr = Field(SecretStr(""), validation_alias="OPENAI_API_KEY")
    """API key of the LLM endpoint."""
    openai_base_url: str = Field("", repr=False, validation_alias="OPENAI_BASE_URL")
    """Base URL of the LLM endpoint."""
    openai_model: str = Field("gpt-4o-mini", validation_alias="OPENAI_MODEL")
    """Model name at the endpoint."""
    rerank_url: str = Field("", repr=False)
    """Address of a reranker that answers /rerank (Cohere, Jina, vLLM, TEI), such as http://127.0.0.1:8080/v1."""
    rerank_key: SecretStr = SecretStr("")
    """API key of that reranker."""
    price_rerank: float = Field(0.0, ge=0)
    """Price per thousand calls to that reranker."""
    allowed_hosts: str = ""
    """Host names under which the app is served in addition to 127.0.0.1, localhost and [::1],
    separated by commas; any port. A reverse proxy must pass on the Host header."""
    rule_templates: str = ""
    """Folder with your own prompt templates for drafting rules (.toml). Default: `templates` in the workspace."""
    judge_prompts: str = ""
    """Folder with your own prompt variants for the judge (.toml); the library reads it without a
    workspace too. Default: `prompts` in the workspace."""
    answer_timeout_s: float = Field(60.0, gt=0)
    """Timeout of one answer, in seconds."""
    cache_mb: float = Field(100.0, ge=0)
    """Size limit, in MB, of the LLM answers and verdicts kept in the workspace for later runs. The
    least recently used are removed first; 0 keeps none."""
    price_prompt: float = Field(0.0, ge=0)
    """Price per million prompt tokens."""
    price_completion: float = Field(0.0, ge=0)
    """Price per million answer tokens."""
    currency: str = Field("", max_length=8)
    """Currency of the prices, shown with every amount: a sign ($) goes before it, a name (EUR) after it."""

    @model_validator(mode="before")
    @classmethod
    def _from_environment(cls, values: dict[str, Any]) -> dict[str, Any]:
        environ = {name.upper(): value for name, value in os.environ.items()}
        variables = {n: str(f.validation_alias or f"{PREFIX}{n.upper()}") for n, f in cls.model_fields.items()}
        given: dict[str, Any] = {n: environ[v] for n, v in variables.items() if v in environ}
        if "data_dir" in values:
            given.pop("workspace", None)
        given |= values
        if workspace := str(given.get("workspace") or ""):
            given["data_dir"] = passing_folder(workspace) if is_address(workspace) else workspace
        return given

    @property
    def address(self) -> str:
        """The address of the workspace's database; empty if it is a folder."""
        return self.workspace if is_address(self.workspace) else ""


def read_deployment(*, data_dir: str | Path | None = None) -> Deployment:
    """The deployment that the environment describes; `data_dir` is a folder or an address. Raises SettingsError."""
    arguments: dict[str, Any] = {} if data_dir is None else {"workspace": str(data_dir)}
    try:
        return Deployment(**arguments)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        variable = name if name.isupper() else f"RAGFILTER_{name.upper()}"
        # The value is left out: it might be a key.
        raise SettingsError(
            f"The environment variable {variable} is not allowed: {complaint(first['msg'])}.",
            remedy="Correct or unset it.",
        ) from None


def is_address(workspace: str) -> bool:
    """Whether a workspace is an address rather than a folder."""
    return workspace.startswith(("postgresql://", "postgres://", "postgresql+psycopg://"))


def passing_folder(address: str) -> Path:
    """The local folder for temporary files of a workspace at an address."""
    name = hashlib.sha256(address.encode()).hexdigest()[:16]
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "ragfilter" / name
