from genaccel.clocks import check_dates
from genaccel.site.at_work import announce
from genaccel.site.records import record_at_submission
from genaccel.site.rules import check_names, check_requests, place_rules
from genaccel.site.spec import read_site

# After all rules: what they need becomes what this cluster calls it. Which site file row, a profile says.
with config_errors():
    check_names(
        workflow.rules,
        {
            "set-resources": workflow.resource_settings.overwrite_resources,
            "set-threads": workflow.resource_settings.overwrite_threads,
        },
    )
    check_requests(workflow.rules)
    if SITE not in (None, LOCAL_GPU):
        place_rules(workflow.rules, read_site(), SITE, workflow.resource_settings.overwrite_resources)


onstart:
    announce()
    if not workflow.local_exec:
        record_at_submission(workflow.persistence)
    # What a profile groups is not known before.
    with config_errors():
        check_names(workflow.rules, {"groups": workflow.group_settings.overwrite_groups})
        check_dates(workflow.dag.needrun_jobs())
    # Snakemake asks for a job's resources when the job is ready, which may be hours after others were submitted.
    for needed in workflow.dag.needrun_jobs():
        resources = needed.resources
        if SITE is None and workflow.executor_plugin.name == "slurm" and resources.get("gpu"):
            if not (resources.get("slurm_partition") or workflow.executor_settings.partition_config):
                raise WorkflowError(
                    f"{needed.rule.name} asks for a device and has no partition: the profile's `config: [site=...]` is missing. "
                    "A --config on the command line replaces it; add site=slurm (or slurm-gaudi) there"
                )
