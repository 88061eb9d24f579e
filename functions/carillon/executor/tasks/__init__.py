"""Task modules that come with Carillon; a deployment names its own in TASK_MODULES."""
