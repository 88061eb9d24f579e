"""The local stack: MiniStack, the deployed app, a user, a webhook receiver and sample jobs."""
