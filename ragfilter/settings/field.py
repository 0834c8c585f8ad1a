"""How a setting is declared, and what widgets, flags and docs read of the declaration.

The settings themselves are in `ragfilter.settings.schema`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field


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
    choices: tuple[str, ...] = (),
) -> Any:
    """Declare one setting: a widget offers values up to `ceiling`, validation allows up to `le`.

    `choices` are for those that are found at run time; where they are fixed, a Literal says them.
    """
    extra: dict[str, Any] = {
        "unit": unit, "step": step, "label": label, "ceiling": ceiling, "choices": choices,
    }  # fmt: skip
    return Field(default, ge=ge, le=le, description=help, json_schema_extra=extra)


class Section(BaseModel):
    """Base of the sections: frozen, unknown keys refused, no silent conversion of booleans."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """One setting as widgets, flags and docs need it. `low`/`high` are None where unbounded;
    `ceiling` is the highest value a slider offers."""

    path: str
    type: type
    default: Any
    help: str
    label: str
    unit: str
    low: float | None
    high: float | None
    step: float | None
    ceiling: float | None
    choices: tuple[str, ...]

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
            return f"{kind} from {self.low:g} to {self.high:g}"
        return f"{kind} of at least {self.low:g}" if self.low is not None else kind


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
            literal = get_origin(leaf.annotation) is Literal
            high = bounds.get("le")
            yield FieldInfo(
                path=f"{section}.{name}",
                type=str if literal else cast(type, leaf.annotation),
                default=leaf.default,
                help=leaf.description or "",
                label=str(extra["label"] or name.replace("_", " ").capitalize()),
                unit=str(extra["unit"]),
                low=bounds.get("ge"),
                high=high,
                step=extra["step"],  # type: ignore[arg-type]
                ceiling=extra["ceiling"] or high,  # type: ignore[arg-type]
                choices=get_args(leaf.annotation) if literal else extra["choices"],  # type: ignore[arg-type]
            )
