"""The tasks of billing."""

from io import StringIO

import boto3
from rich.console import Console
from rich.table import Table

from carillon.tasks import TaskContext, job, task


@task
def report(payload, context: TaskContext):
    """Put what is due into the bucket that the payload names."""
    table, text = Table("customer", "due"), StringIO()
    for customer, due in payload["due"].items():
        table.add_row(customer, due)
    Console(file=text, width=40).print(table)
    key = f"{context.fire_at:%Y-%m-%d/%H%M%S}.txt"
    boto3.client("s3").put_object(Bucket=payload["bucket"], Key=key, Body=text.getvalue().encode())
    return key


@job(schedule="every 5s", description="Looks for what is overdue")
def check(payload, context: TaskContext):
    return "nothing is overdue"
