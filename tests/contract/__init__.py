"""One suite for the ports, run on every implementation: memory, DynamoDB and SQS on two emulators.

moto is for one thread; what races runs on memory and MiniStack only.
"""
