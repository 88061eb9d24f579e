"""What can be told of a schedule: in English, in numbers, in warnings."""
