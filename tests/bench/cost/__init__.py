"""`make bench-cost`: every AWS request of the real handlers, counted and priced."""
