"""The ports on DynamoDB (PynamoDB) and SQS (boto3)."""

from shared.stores.dynamo.connecting import Stores, open_stores

__all__ = ["Stores", "open_stores"]
