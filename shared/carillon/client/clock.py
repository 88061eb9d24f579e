"""Time, waiting and chance for the client: it has none of the functions' libraries, as their clock
has."""

import random
import time
from datetime import UTC, datetime
from uuid import uuid4


class Clock:
    """The machine's; tests put another in its place."""

    def now(self) -> datetime:
        """The current instant, aware, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def sleep_async(self, seconds: float) -> None:
        import asyncio  # Half of all that `import carillon.client` would take.

        await asyncio.sleep(seconds)

    def fraction(self) -> float:
        """A number in [0, 1), for jitter."""
        return random.random()

    def new_key(self) -> str:
        """An idempotency key that nobody has used."""
        return uuid4().hex
