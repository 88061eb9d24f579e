"""The ports on DynamoDB (PynamoDB), SQS and EventBridge (boto3)."""

from shared.stores.dynamo.connecting import open_stores
from shared.stores.stores import Stores

__all__ = ["Stores", "open_stores"]
