"""Tables, the signing secret of webhooks, and the bus of lifecycle events."""

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from carillon.cdk.constructs.helpers import acknowledge
from carillon.cdk.options import Options
from carillon.stores.ports import EXPIRY_ATTRIBUTE, LISTED_MEMBERS

ATTENTION_INDEX = "attention"
OWNER_INDEX = "by_owner"


class Tables(Construct):
    """All on demand; those of production outlive the stack.

    Jobs and wheel have point-in-time recovery, runs by option: history expires anyway, jobs
    continue without it, and it is by far the largest table. None is protected against deletion by
    its own setting: a first deployment that fails could not take it back, and would be stuck.
    """

    def __init__(self, scope: Construct, construct_id: str, options: Options) -> None:
        super().__init__(scope, construct_id)
        self._removal_policy = options.data_policy
        self._warm = _warm_throughput(options.warm_write_units)
        self.jobs = self._table("Jobs", "pk", "sk")
        # Without tombstones, and without the rows that owners have beside jobs.
        self.jobs.add_global_secondary_index(
            index_name=OWNER_INDEX,
            partition_key=_text_key("owner"),
            sort_key=_text_key("list_key"),
            projection_type=dynamodb.ProjectionType.INCLUDE,
            non_key_attributes=list(LISTED_MEMBERS),
            warm_throughput=self._warm,
        )
        self.wheel = self._table("Wheel", "segment_slot", "entry_key")
        self.runs = self._table("Runs", "job_key", "run_key", recovery=options.recover_runs)
        if not options.recover_runs:
            acknowledge(
                self.runs,
                "AwsSolutions-DDB3",
                "history expires, and no job needs it; the option recover_runs keeps it",
            )
        # Sparse: only runs that need attention carry these two attributes.
        self.runs.add_global_secondary_index(
            index_name=ATTENTION_INDEX,
            partition_key=_text_key("attention_owner"),
            sort_key=_text_key("attention_key"),
            projection_type=dynamodb.ProjectionType.ALL,
            warm_throughput=self._warm,
        )

    @property
    def attention_index_arn(self) -> str:
        """The ARN of the runs' one index; grants name it rather than `index/*`."""
        return f"{self.runs.table_arn}/index/{ATTENTION_INDEX}"

    @property
    def owner_index_arn(self) -> str:
        """The ARN of the jobs' one index."""
        return f"{self.jobs.table_arn}/index/{OWNER_INDEX}"

    def _table(
        self, construct_id: str, partition_key: str, sort_key: str, *, recovery: bool = True
    ) -> dynamodb.Table:
        return dynamodb.Table(
            self,
            construct_id,
            partition_key=_text_key(partition_key),
            sort_key=_text_key(sort_key),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=EXPIRY_ATTRIBUTE,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=recovery
            ),
            warm_throughput=self._warm,
            removal_policy=self._removal_policy,
        )


def _warm_throughput(write_units: int) -> dynamodb.WarmThroughput | None:
    """Reads are as many as a new table has for its writes: three to one."""
    if not write_units:
        return None
    return dynamodb.WarmThroughput(
        write_units_per_second=write_units, read_units_per_second=3 * write_units
    )


def _text_key(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


SECRET_LENGTH = 48
"""Letters and digits: 285 bits of chance in 48 bytes; Standard Webhooks asks for 24 to 64 bytes."""


class Webhooks(Construct):
    """One signing secret per deployment, made by AWS and never seen by the template.

    AWS makes text, not base64: the Standard Webhooks secret that both sides use is `whsec_`
    followed by the base64 of this text's bytes. A value that begins with `whsec_`, which an
    operator may put there instead, is used as it is.
    """

    def __init__(self, scope: Construct, construct_id: str, options: Options) -> None:
        super().__init__(scope, construct_id)
        self.secret = secretsmanager.Secret(
            self,
            "SigningSecret",
            description="Signs the webhooks of Carillon: whsec_ and the base64 of this text",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                password_length=SECRET_LENGTH, exclude_punctuation=True
            ),
            removal_policy=options.data_policy,
        )
        acknowledge(
            self.secret,
            "AwsSolutions-SMG4",
            "every receiver holds a copy, so a rotation that AWS begins would break them all",
        )


class Events(Construct):
    """A bus that only the deployment's own functions put events on; without rules it is free."""

    def __init__(self, scope: Construct, construct_id: str, options: Options) -> None:
        super().__init__(scope, construct_id)
        self.bus = events.EventBus(
            self,
            "Bus",
            event_bus_name=f"{options.name}-events",
            description="Lifecycle events of Carillon",
        )
