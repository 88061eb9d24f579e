"""The race of two ticks that share a minute."""

from dataclasses import replace
from datetime import timedelta

from carillon.domain.job import segment_of
from carillon.domain.wheel.entry import minute_of
from carillon.tick.dispatcher import Dispatcher
from carillon.tick.root import Root
from carillon.tick.sharing import Share, Worth, in_order, segments_of
from tests.simulation.races.exploration import Actor, Setting
from tests.simulation.races.kit import (
    JOB_ID,
    OPTIONS,
    TICK_SECONDS,
    Race,
    at,
    create,
    cron,
    lived,
    race,
)
from tests.simulation.races.replay import World

_SEGMENTS = 3
_ORDER = in_order(_SEGMENTS, minute_of(at(7)))
_SHARE = Share(1, 2)


def _root(world: World) -> None:
    """Its first segment has a backlog, so it invites the share: an actor of its own, which may come
    late, or of another minute's root before it is invited."""
    ports, deadline = world.deployment.tick_ports, world.now() + timedelta(seconds=TICK_SECONDS)
    root = Root(
        ports,
        _dispatcher(world),
        lambda share: None,
        lambda share, error: None,
        workers=_SHARE.of,
        worth=Worth(),
    )
    root.tick(_SEGMENTS, deadline)


def _share(world: World) -> None:
    deadline = world.now() + timedelta(seconds=TICK_SECONDS)
    _dispatcher(world).tick(*segments_of(_ORDER, _SHARE), deadline)


def _dispatcher(world: World) -> Dispatcher:
    deployment = world.deployment
    owner = deployment.entropy.new_id(world.now())
    look_ahead = deployment.options.look_ahead_minutes
    return Dispatcher(deployment.tick_ports, lease_owner=owner, look_ahead_minutes=look_ahead)


def share_against_root() -> Setting:
    """The job is in the share's own segment; each segment has missed 12:06."""
    assert segments_of(_ORDER, _SHARE)[0] == (segment_of(JOB_ID, _SEGMENTS),)
    options = replace(OPTIONS, segments=_SEGMENTS)
    asked = {at(0, 10): create(**cron("7"))}
    contents = lived(at(6, 50), asked, ticks_down=at(3, 30), options=options)
    return race(at(7, 1), contents, [Actor("root", _root), Actor("share", _share)], options=options)


SHARINGS = (
    Race("share against root", share_against_root, "given_away_counts_as_dispatched", losses=0),
)
