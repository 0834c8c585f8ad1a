"""How settings are declared, for widgets, flags and docs. `ragfilter.settings.schema` has the settings themselves."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, core_schema

MAX_CHUNKS = 1_000_000
"""Maximum number of chunks in a setting; no collection in use has more."""


def setting(
    default: Any,
    *,
    unit: str = "",
    ge: float | None = None,
    le: float | None = None,
    step: float | None = None,
    label: str = "",
    ceiling: float | None = None,
) -> Any:
    """Declare one setting: a widget offers values up to `ceiling`, validation allows up to `le`.
    The docstring below the setting says what it does.

    Fixed choices are a Literal; choices from a mapping or a folder are ``Annotated[str, OneOf(...)]``."""
    extra: dict[str, Any] = {"unit": unit, "step": step, "label": label, "ceiling": ceiling}
    return Field(default, ge=ge, le=le, json_schema_extra=extra)


class Section(BaseModel):
    """Base of the sections: frozen, forbids unknown keys, does not convert booleans silently."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class SettingTable(Section):
    """A setting with several parts, which tuning writes and nobody types: a table in a settings file, JSON in a link, a
    flag or an environment variable. Both forms are accepted everywhere."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError):
            raise ValueError("it must be a JSON object") from None

    @property
    @abstractmethod
    def summary(self) -> str:
        """A short description, for places where the whole is too long."""

    @property
    def json_text(self) -> str:
        """Its JSON, without the defaults."""
        return self.model_dump_json(exclude_defaults=True)

    def __str__(self) -> str:
        return self.json_text

    def __hash__(self) -> int:
        # Mappings cannot be hashed, and making the JSON takes long.
        return hash(self.summary)


Table = type[SettingTable] | None
OR_NOTHING = BeforeValidator(lambda value: None if value == "" else value)
"""Annotates an optional table: empty text becomes None."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Marks a text setting as a choice of names, each with a sentence that describes it. `known` may read files, so it
    is not called at import."""

    known: Callable[[], Mapping[str, str]]

    def check(self, value: str) -> str:
        if value not in self.known():
            raise ValueError(f"must be one of {', '.join(self.known())}")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """One setting as widgets, flags and docs need it. `low`/`high` are None if unbounded; `ceiling` is the highest
    value a slider offers; `table` is the class of a setting with parts of its own."""

    path: str
    value_type: type[Any]
    default: Any
    about: str
    label: str
    unit: str
    low: float | None
    high: float | None
    step: float | None
    ceiling: float | None
    options: tuple[str, ...] | OneOf
    table: Table = None

    @property
    def choices(self) -> tuple[str, ...]:
        """The names to choose from; empty if the value is free."""
        return tuple(self.options.known()) if isinstance(self.options, OneOf) else self.options

    @property
    def help(self) -> str:
        """What the setting does, and what each of its choices means."""
        if not isinstance(self.options, OneOf):
            return self.about
        return " ".join([self.about, *(f"{k}: {about}" for k, about in self.options.known().items())])

    @property
    def section(self) -> str:
        return self.path.partition(".")[0]

    @property
    def name(self) -> str:
        return self.path.partition(".")[2]

    def allowed(self) -> str:
        """The allowed values in words, for messages and docs."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.table is not None:
            return "a table"
        kind = {bool: "true or false", str: "text", int: "a whole number", float: "a number"}[self.value_type]
        # Every number with a limit has both.
        return kind if self.low is None else f"{kind} from {self.low:,.10g} to {self.high:,.10g}"


def walk(tree: type[BaseModel]) -> Iterator[FieldInfo]:
    """Every setting of a model whose fields are sections, in order."""
    for section, info in tree.model_fields.items():
        for name, leaf in cast(type[Section], info.annotation).model_fields.items():
            extra = cast(dict[str, Any], leaf.json_schema_extra)
            bounds = {key: getattr(m, key) for m in leaf.metadata for key in ("ge", "le") if hasattr(m, key)}
            literal = get_origin(leaf.annotation) is Literal
            arguments = get_args(leaf.annotation)
            table = None if literal or not arguments else cast(type[SettingTable], arguments[0])
            choices = next((m for m in leaf.metadata if isinstance(m, OneOf)), ())
            high = bounds.get("le")
            yield FieldInfo(
                path=f"{section}.{name}",
                value_type=str if literal else table or cast(type, leaf.annotation),
                default=leaf.default,
                about=" ".join((leaf.description or "").split()),
                label=extra["label"] or name.replace("_", " ").capitalize(),
                unit=extra["unit"],
                low=bounds.get("ge"),
                high=high,
                step=extra["step"],
                ceiling=extra["ceiling"] or high,
                options=arguments if literal else choices,
                table=table,
            )
