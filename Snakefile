from snakemake.utils import min_version

min_version("9.27")


# A config named on the command line is complete in itself. The demo's is only the default: Snakemake would
# merge the two, and the demo's models would run beside the user's.
if not workflow.overwrite_configfiles:

    configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/sample.smk"
include: "workflow/rules/metrics.smk"
include: "workflow/rules/optimize.smk"
include: "workflow/rules/profile.smk"
include: "workflow/rules/figures.smk"


rule all:
    default_target: True
    input:
        # All that lasts, not the last stage alone: what a user deletes of it is made again.
        rules.data.input,
        rules.train.input,
        rules.sample.input,
        rules.metrics.input,
        rules.optimize.input,
        rules.profile.input,
        rules.figures.input,


include: "workflow/rules/site.smk"
