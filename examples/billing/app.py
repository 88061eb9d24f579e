import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs

from carillon.cdk import Carillon, Tasks

app = cdk.App()
stack = cdk.Stack(app, "Billing")
bucket, reminders = s3.Bucket(stack, "Reports"), sqs.Queue(stack, "Reminders")
tasks = Tasks.from_package("billing.jobs", requirements="requirements.txt")

scheduler = Carillon(stack, "Scheduler", team="billing", stage="dev", tasks=tasks)
scheduler.add_job("remind", schedule="every 5s", target=reminders, payload={"kind": "reminder"})
due = {"bucket": bucket.bucket_name, "due": {"Ieva": "12.50"}}
scheduler.add_job("report", schedule="every 5s", target="report", payload=due)
scheduler.add_manifest("jobs.yaml")
bucket.grant_put(scheduler.task_role)
scheduler.grant_manage(iam.Role(stack, "Clerk", assumed_by=iam.AccountRootPrincipal()))
app.synth()
