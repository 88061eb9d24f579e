"""`carillon simulate`, with its report and its replay."""
