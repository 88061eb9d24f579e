"""`carillon completion`: the script with which a shell completes commands, options and names."""

from enum import StrEnum
from typing import Annotated

import typer

from carillon.cli.output import write_line

_PROGRAM = "carillon"
_VARIABLE = "_CARILLON_COMPLETE"
_END = "    return 0\n"
_QUOTED = r"""    if [ ${#COMPREPLY[@]} -gt 0 ] && [[ ${COMP_WORDS[COMP_CWORD]} != [\'\"]* ]]; then
        COMPREPLY=( $(printf '%q\n' "${COMPREPLY[@]}") )
    fi
"""
"""Names have spaces. zsh and fish quote what they complete; bash does so for files only."""


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(show_default=False)]) -> None:
    """Print the completion script of a shell: `source <(carillon completion bash)`, or `carillon
    completion fish | source`.

    Names of jobs and calendars are asked from the API, for a second at most.
    """
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name=_PROGRAM, complete_var=_VARIABLE, shell=shell.value)
    write_line(script.replace(_END, _QUOTED + _END) if shell is Shell.BASH else script)
