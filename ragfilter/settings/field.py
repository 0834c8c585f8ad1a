"""How a setting is declared. Widgets, flags and docs read these declarations.

The settings themselves are in `ragfilter.settings.schema`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

MOST_CHUNKS = 1_000_000
"""The largest number of chunks that can be asked for: none is left out that was not."""


def setting(
    default: Any,
    help: str,
    *,
    unit: str = "",
    ge: float | None = None,
    le: float | None = None,
    step: float | None = None,
    label: str = "",
    ceiling: float | None = None,
) -> Any:
    """Declare one setting: a widget offers values up to `ceiling`, validation allows up to `le`.

    Fixed choices are a Literal; those that a registry or a folder knows are ``Annotated[str,
    OneOf(...)]``.
    """
    extra: dict[str, Any] = {"unit": unit, "step": step, "label": label, "ceiling": ceiling}
    return Field(default, ge=ge, le=le, description=help, json_schema_extra=extra)


class Section(BaseModel):
    """Base of the sections: frozen, unknown keys refused, no silent conversion of booleans."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class OneOf:
    """Marks a text setting as one of several names, each with a sentence on what it is.

    `known` is called when the names are needed, never at import: it may read files.
    """

    known: Callable[[], Mapping[str, str]]

    def check(self, value: str) -> str:
        if value not in self.known():
            raise ValueError(f"must be one of {', '.join(self.known())}")
        return value

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))


class Readable(Protocol):
    """What a JSON object in the settings holds."""

    @property
    def summary(self) -> str:
        """A few words, where the whole would be too long."""

    def to_json(self) -> str:
        """Its text in its one spelling."""


@dataclass(frozen=True, slots=True)
class JsonTable:
    """Marks a text setting that holds a JSON object; a settings file has it as a table.

    `read` gives what the text holds, or raises ValueError. An empty text holds nothing.
    """

    read: Callable[[str], Readable]

    def check(self, value: str) -> str:
        """The text in its one spelling. Raises ValueError."""
        return self.read(value).to_json() if value else ""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """One setting as widgets, flags and docs need it. `low`/`high` are None if unbounded;
    `ceiling` is the highest value a slider offers; what a `table` reads is nothing that is
    typed."""

    path: str
    type: type
    default: Any
    about: str
    label: str
    unit: str
    low: float | None
    high: float | None
    step: float | None
    ceiling: float | None
    options: tuple[str, ...] | OneOf
    table: JsonTable | None = None

    @property
    def choices(self) -> tuple[str, ...]:
        """The names to choose from; empty if the value is free."""
        return tuple(self.options.known()) if isinstance(self.options, OneOf) else self.options

    @property
    def help(self) -> str:
        """What it does, and what each of its choices is."""
        if not isinstance(self.options, OneOf):
            return self.about
        return " ".join(
            [self.about, *(f"{k}: {about}" for k, about in self.options.known().items())]
        )

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
        if self.type is bool:
            return "true or false"
        if self.type is str:
            return "text"
        kind = "a whole number" if self.type is int else "a number"
        if self.low is not None and self.high is not None:
            return f"{kind} from {self.low:,.10g} to {self.high:,.10g}"
        return f"{kind} of at least {self.low:,.10g}" if self.low is not None else kind


def walk(tree: type[BaseModel]) -> Iterator[FieldInfo]:
    """Every setting of a model whose fields are sections, in their order."""
    for section, info in tree.model_fields.items():
        model = info.annotation
        assert isinstance(model, type)
        assert issubclass(model, Section)
        for name, leaf in model.model_fields.items():
            extra = leaf.json_schema_extra
            assert isinstance(extra, dict)
            bounds = {
                key: getattr(m, key)
                for m in leaf.metadata
                for key in ("ge", "le")
                if hasattr(m, key)
            }
            named = next((m for m in leaf.metadata if isinstance(m, OneOf)), ())
            table = next((m for m in leaf.metadata if isinstance(m, JsonTable)), None)
            literal = get_origin(leaf.annotation) is Literal
            high = bounds.get("le")
            yield FieldInfo(
                path=f"{section}.{name}",
                type=str if literal else cast(type, leaf.annotation),
                default=leaf.default,
                about=leaf.description or "",
                label=str(extra["label"] or name.replace("_", " ").capitalize()),
                unit=str(extra["unit"]),
                low=bounds.get("ge"),
                high=high,
                step=extra["step"],  # type: ignore[arg-type]
                ceiling=extra["ceiling"] or high,  # type: ignore[arg-type]
                options=get_args(leaf.annotation) if literal else named,
                table=table,
            )
