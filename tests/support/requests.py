"""What simulated clients send to the API."""

import json
from collections.abc import Mapping
from typing import Any

from carillon.api.jobs.request_models import JobPatch

API_SECONDS = 29
"""API Gateway waits no longer; nor does the function."""


def job_patch(document: Mapping[str, Any]) -> JobPatch:
    """A body of PATCH /jobs/{job_id}; raises pydantic.ValidationError."""
    return JobPatch.model_validate_json(json.dumps(document))
