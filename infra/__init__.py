"""The deployment of Carillon: the CDK app, the local stack and the command line."""
