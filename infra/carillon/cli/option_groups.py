"""Groups of options that commands share: a dataclass whose fields are options."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer is to see it: a parameter that is a dataclass becomes its fields.

    Every field needs a default and an `Annotated` type, as a command's own options have them.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            parameters += _options_of(hints[name])
        else:
            parameters.append(
                parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            )

    @wraps(command)
    def called(**given: Any) -> None:
        filled = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **filled)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def _options_of(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
