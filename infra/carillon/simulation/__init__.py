"""The functions deployed into virtual time: memory stores, a simulated queue and simulated targets,
as cooperative tasks under a virtual clock, with faults at every call. No function imports this.

`infra/carillon/local` deploys the same functions to an emulator; this needs no server at all.
"""
