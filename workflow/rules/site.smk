from genaccel.site.rules import check_profile, place_rules
from genaccel.site.spec import read_site

# After all rules: what they need becomes what this cluster calls it. Which site file row, a profile says.
with config_errors():
    check_profile(
        workflow.rules,
        {
            "set-resources": workflow.resource_settings.overwrite_resources,
            "set-threads": workflow.resource_settings.overwrite_threads,
            "groups": workflow.group_settings.overwrite_groups,
        },
    )
    if SITE not in (None, LOCAL_GPU):
        place_rules(workflow.rules, read_site(), SITE, workflow.resource_settings.overwrite_resources)
