"""`carillon`, the command: talks HTTP to the API only; `preview` computes locally."""
