"""Descriptions of a schedule: in English, in numbers, in warnings."""
