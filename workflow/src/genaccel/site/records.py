"""What made each output is on record from the moment its job is submitted."""

from __future__ import annotations

from typing import Any

from snakemake.persistence import RECORD_FORMAT_VERSION, MetadataRecord


def record_at_submission(persistence: Any) -> None:
    """Makes Snakemake write a job's record (settings, code, inputs) when it submits it, not only when it sees its end.

    A job on a cluster outlives a Snakemake that is killed. The Snakemake inside the job then takes away the mark of its
    incomplete outputs, but leaves their record to the dead one: they would count as up to date whatever is changed.
    Until that mark is gone the record counts for nothing, so that it may be written early.

    Args:
        persistence: of the Snakemake that submits.
    """
    started = persistence.started

    def started_and_recorded(job: Any, external_jobid: str | None = None) -> None:
        started(job, external_jobid)
        for output in job.output:
            key = persistence._get_key(output)
            record = persistence._read_record(key) or MetadataRecord()
            record.rule = job.rule.name
            record.code = persistence._code(job.rule)
            record.input = persistence._input(job)
            record.log = persistence._log(job)
            record.params = persistence._params(job)
            record.shellcmd = job.shellcmd
            record.conda_env = persistence._conda_env(job)
            record.software_stack_hash = persistence._software_stack_hash(job)
            record.container_img_url = job.container_img_url
            record.record_format_version = RECORD_FORMAT_VERSION
            # Those of inputs that may not be made yet: without, a newer input counts as another one.
            record.input_checksums = {}
            record.incomplete = True
            persistence._write_record(key, record)

    persistence.started = started_and_recorded
