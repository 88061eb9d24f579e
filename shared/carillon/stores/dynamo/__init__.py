"""The ports on DynamoDB (PynamoDB), SQS and EventBridge (boto3)."""

from carillon.stores.dynamo.connecting import open_stores
from carillon.stores.stores import Stores

__all__ = ["Stores", "open_stores"]
