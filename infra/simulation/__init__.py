"""The functions deployed into virtual time: memory stores, a simulated queue and simulated targets.

`infra/local` deploys the same functions to an emulator; this needs no server at all.
"""
