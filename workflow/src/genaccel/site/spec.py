"""The site file: a row a device model, with what this cluster calls it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from pydantic import field_validator, model_validator

from genaccel.config.reading import read_yaml
from genaccel.spec import WORD, Spec, SpecError, nearest, setting

SITE_FILE = Path("profiles/site.yaml")
REQUEST = re.compile(r"--gpus=(?:(?P<model>[\w.-]+):)?\{n\}|--gres=(?P<gres>\w+)(?::(?P<type>[\w.-]+))?:\{n\}")


class Limits(Spec):
    """What a partition grants one job; None is no limit. Memory and cores are those of each of its nodes."""

    runtime: int | None = setting(None, "minutes", example=1440, ge=1)
    mem_mb: int | None = setting(None, "MB of the host's memory", example=500_000, ge=1)
    threads: int | None = setting(None, "CPU cores", example=32, ge=1)
    devices: int | None = setting(None, "accelerators", example=8, ge=1)
    devices_per_node: int | None = setting(
        None, "accelerators of one node: jobs that ask for more get several nodes; null: never more than one",
        example=8, ge=1,
    )  # fmt: skip


class Place(Spec):
    """A partition and what its jobs must say besides."""

    partition: str = setting(
        "", "name of the partition, or several with commas", example="cpu", min_length=1, pattern=WORD
    )
    account: str | None = setting(None, "account, where it differs from the site's", example="gpu", pattern=WORD)
    constraint: str | None = setting(None, "feature of the nodes (sbatch -C)", example="sxm", pattern=WORD)
    qos: str | None = setting(None, "quality of service", example="long", pattern=WORD)
    extra: str | None = setting(None, "further options of sbatch", example="--exclusive")
    limits: Limits = setting(Limits(), "what the partition grants one job", example=None)

    @field_validator("extra")
    @classmethod
    def _options(cls, extra: str | None) -> str | None:
        try:
            words = shlex.split(extra or "")
        except ValueError as error:
            raise ValueError(f"{extra!r} is no part of a command line ({error})") from None
        if extra and ("\n" in extra or not words or not words[0].startswith("-")):
            raise ValueError(f"{extra!r} holds no options of sbatch; write them on one line, e.g. --exclusive, or null")
        return extra


class DevicePlace(Place):
    """A partition with accelerators of one model."""

    request: str = setting(
        "",
        "how a job asks for {n} devices: --gpus={n}, --gpus=MODEL:{n} or --gres=NAME[:TYPE]:{n}",
        example="--gpus={n}",
    )

    @field_validator("request")
    @classmethod
    def _known_form(cls, request: str) -> str:
        match = REQUEST.fullmatch(request)
        if not match:
            raise ValueError(
                f"{request!r} is no such option; write --gpus={{n}}, --gpus=MODEL:{{n}}, --gres=NAME:{{n}} or "
                "--gres=NAME:TYPE:{n}, with {n} for the number"
            )
        if match["gres"] not in (None, "gpu") and "-" in (match["type"] or ""):
            raise ValueError(
                f"the SLURM executor takes no dash in {request!r}; leave the type out and use `constraint`"
            )
        return request


class Site(Spec):
    """One cluster."""

    account: str | None = setting(
        None, "account that jobs are charged to; null leaves it to SLURM", example="me", pattern=WORD
    )
    scratch: str | None = setting(
        None, "folder for temporary files, e.g. /scratch/$USER; null: /tmp", example="/scratch"
    )
    profiles: dict[str, str] = setting({}, "by profile, the device of jobs that name none", example={"slurm": "a100"})
    cpu: Place = setting(Place(), "where jobs without an accelerator run", example=None)
    devices: dict[str, DevicePlace] = setting({}, "places by device model", example=None, min_length=1)

    @model_validator(mode="after")
    def _every_profile_has_its_device(self) -> Site:
        for profile, device in self.profiles.items():
            if device not in self.devices:
                raise ValueError(f"profiles.{profile}: there is no row {device!r}; {nearest(device, self.devices)}")
        if not self.cpu.partition:
            raise ValueError("cpu.partition: missing; name the partition for jobs without an accelerator")
        for name, row in self.devices.items():
            for key in ("partition", "request"):
                if not getattr(row, key):
                    raise ValueError(f"devices.{name}.{key}: missing; give it a value")
        return self

    def default_device(self, profile: str) -> str:
        """The device of jobs that name none.

        Raises:
            SpecError: the file does not know the profile.
        """
        if profile not in self.profiles:
            raise SpecError(f"{SITE_FILE}: there is no row profiles.{profile}; {nearest(profile, self.profiles)}")
        return self.profiles[profile]


def read_site(path: Path = SITE_FILE) -> Site:
    """Reads the site file.

    Raises:
        SpecError: naming the file and every faulty key.
    """
    try:
        return Site.build(read_yaml(path))
    except SpecError as error:
        lines = (line if str(path) in line else f"{path}: {line}" for line in str(error).splitlines())
        raise SpecError("\n".join(lines)) from None
