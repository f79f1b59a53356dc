"""The options of our scheduler: whose pods it binds, and by which profiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from wukong.api.profile import Profile
from wukong.api.scheduler_config import read_scheduler_profiles
from wukong.api.versions import DEFAULT, VERSIONS
from wukong.app.component import PlaceOf
from wukong.cluster import place_name, read_settings
from wukong.controllers.scheduler.controller import DEFAULT_NAME
from wukong.errors import InputError

OWN_NAME = "wukong-scheduler"
LEASE = "wukong-own-scheduler"  # not that of a second kube-scheduler, which is called wukong-scheduler
_LONGEST_LEASE = 253


class SchedulerOptions(msgspec.Struct, frozen=True, rename="camel"):
    scheduler_name: Annotated[
        tuple[str, ...], Meta(description="The schedulerNames of the pods that it binds.", extra={"metavar": "NAMES"})
    ] = (OWN_NAME,)
    scheduler_config: Annotated[
        str,
        Meta(
            description="Its profiles: a KubeSchedulerConfiguration.  [default: kube-scheduler's]",
            extra={"metavar": "FILE"},
        ),
    ] = ""


def find_problems(options: SchedulerOptions, place_of: PlaceOf) -> Iterator[str]:
    if not options.scheduler_name:
        yield f"{place_of('scheduler_name')}: expected a name such as {OWN_NAME}, got none."
    if DEFAULT_NAME in options.scheduler_name:
        yield (
            f"{place_of('scheduler_name')}: expected names of its own, got {DEFAULT_NAME}: kube-scheduler binds those "
            f"pods, and two schedulers would fill the same room. Try {OWN_NAME}."
        )


def name_lease(options: SchedulerOptions) -> str:
    """One Lease for each set of names, so that schedulers of different names do not wait for each other."""
    if options.scheduler_name == (OWN_NAME,):
        return LEASE
    return "-".join((LEASE, *sorted(options.scheduler_name)))[:_LONGEST_LEASE].rstrip("-.")


def read_profiles(options: SchedulerOptions) -> Mapping[str, Profile]:
    """Return the profile of each name that is not kube-scheduler's default. InputError names the file.

    A name that no profile has goes by the one called default-scheduler, or by the only one.
    """
    if not options.scheduler_config:
        return {}
    place = place_name(options.scheduler_config)
    try:
        profiles = read_scheduler_profiles(read_settings(options.scheduler_config), VERSIONS[DEFAULT])
        return {name: _choose_profile(name, profiles) for name in options.scheduler_name}
    except InputError as error:
        raise error.at(place) from None


def _choose_profile(name: str, profiles: Mapping[str, Profile]) -> Profile:
    fallback = next(iter(profiles.values())) if len(profiles) == 1 else profiles.get(DEFAULT_NAME)
    profile = profiles.get(name, fallback)
    if profile is None:
        known = ", ".join(profiles)
        raise InputError(f"$.profiles: none is called {name} or {DEFAULT_NAME} among {known}. Add one.")
    if profile.extenders:
        raise InputError(
            "$.extenders: our scheduler asks no extenders: it judges by policies itself. Remove them from its file."
        )
    return profile
