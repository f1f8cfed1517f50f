"""The command ``genaccel``: plan or run a study, say what would run again and why, write generated files."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from genaccel.command import stage_errors


def main(argv: Sequence[str] | None = None) -> None:
    argv = list(sys.argv[1:] if argv is None else argv)
    own, extra = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    parser = argparse.ArgumentParser(prog="genaccel", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a study; also the one command after any fault. After --: for snakemake")
    run.add_argument("--config", default="config/config.yaml", help="the study's config (default: the demo)")
    run.add_argument("--profile", default="profiles/default", help="folder of the profile that says where jobs run")
    run.add_argument("--cores", default="", help="cores to use on this machine (default: what the profile says)")
    show = commands.add_parser("show-jobs", help="the exact sbatch line of every kind of job; submits nothing")
    show.add_argument("--config", default="config/config.yaml", help="the study's config (default: the demo)")
    show.add_argument("--profile", default="profiles/slurm", help="folder of a profile that submits jobs")
    why = commands.add_parser("why", help="what would run again, and the module or setting behind it")
    why.add_argument("--config", default="config/config.yaml", help="the study's config (default: the demo)")
    plan = commands.add_parser("plan", help="jobs, disk, device memory and device hours, before anything is submitted")
    plan.add_argument("--config", default="config/config.yaml", help="the study's config (default: the demo)")
    plan.add_argument(
        "--device", help="a device of workflow/resources/devices.csv (default: this machine's GPU, or all)"
    )
    config = commands.add_parser("config", help="write config/config.yaml, its table of keys and the schemas again")
    config.add_argument("--check", action="store_true", help="only say whether they are up to date")
    args = parser.parse_args(own)
    try:
        _carry_out(args, extra)
    except KeyboardInterrupt:
        print("genaccel: interrupted", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)


def _carry_out(args: argparse.Namespace, extra: Sequence[str]) -> None:
    # Each command imports its own: `genaccel why` needs Snakemake, `genaccel config` does not.
    with stage_errors("genaccel"):
        if args.command == "run":
            from genaccel.run import run_study

            sys.exit(run_study(args.config, args.profile, args.cores, extra))
        elif args.command == "show-jobs":
            from genaccel.site.show import print_jobs

            print_jobs(args.config, args.profile)
        elif args.command == "why":
            from genaccel.why import print_reasons

            print_reasons(args.config)
        elif args.command == "plan":
            from genaccel.plan import print_plan

            print_plan(args.config, args.device)
        else:
            from genaccel.config.files import write_generated

            sys.exit(write_generated(check=args.check))


if __name__ == "__main__":
    main()
