"""What firing costs: an estimate in US dollars, by the budget of DESIGN section 7.

Prices are AWS's for us-east-1, on demand, arm64, as DESIGN lists them. The budget says what a fire
of a recurring job takes when fires are many: batches of ten.
"""

WRITE_UNIT_DOLLARS = 0.625e-6
READ_UNIT_DOLLARS = 0.125e-6
QUEUE_REQUEST_DOLLARS = 0.40e-6
LAMBDA_REQUEST_DOLLARS = 0.20e-6
LAMBDA_GB_SECOND_DOLLARS = 0.0000133334

WRITE_UNITS_PER_FIRE = 2
"""The claim and the finish; an occurrence of a recurring job costs no write to the wheel."""
READ_UNITS_PER_FIRE = 1.1
"""The job's row with strong consistency, and its entry's share of the slots' pages."""
QUEUE_REQUESTS_PER_FIRE = 0.3
"""Sent, received and deleted ten at a time."""
LAMBDA_REQUESTS_PER_FIRE = 0.1
LAMBDA_GB_SECONDS_PER_FIRE = 0.25 * 0.02
"""A batch of ten in 200 ms at 256 MB."""

DOLLARS_PER_FIRE = (
    WRITE_UNITS_PER_FIRE * WRITE_UNIT_DOLLARS
    + READ_UNITS_PER_FIRE * READ_UNIT_DOLLARS
    + QUEUE_REQUESTS_PER_FIRE * QUEUE_REQUEST_DOLLARS
    + LAMBDA_REQUESTS_PER_FIRE * LAMBDA_REQUEST_DOLLARS
    + LAMBDA_GB_SECONDS_PER_FIRE * LAMBDA_GB_SECOND_DOLLARS
)
"""About $1.59 a million; the budget is $1.80."""


def dollars_of_fires(fires: int) -> float:
    """US dollars for so many fires, on demand in us-east-1, without the target's own cost.

    It also leaves out what there is however little fires: the ticks, storage, logs, retries.
    """
    return fires * DOLLARS_PER_FIRE
