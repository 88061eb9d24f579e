"""`carillon logout`: the end of a stored sign-in."""

from carillon.cli.commands.login import revoke
from carillon.cli.exits import CliError
from carillon.cli.output import write_done, write_error
from carillon.cli.session import OutputOptions, stored_sign_in
from carillon.client.settings import credentials_path


def logout(*, output: OutputOptions) -> None:
    """Forget the stored sign-in; the means to renew it are revoked where Cognito gave them.

    Where nobody is signed in nothing is done. CARILLON_TOKEN is left as it is.
    """
    path = credentials_path()
    stored = stored_sign_in()
    told = {"api_url": None if stored is None else stored.api_url}
    if stored is None:
        write_done("not signed in", told, output.is_json)
        return
    path.unlink(missing_ok=True)
    if stored.refresh is not None:
        try:
            revoke(stored.refresh)
        except CliError as error:
            write_error(f"Note: not revoked at Cognito: {error.text(as_json=False)}")
    write_done(f"signed out of {stored.api_url}", told, output.is_json)
