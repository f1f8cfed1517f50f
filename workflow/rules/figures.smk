FIGURES = f"{RESULTS}/figures"
FORMAT = CONFIG.figures.format


rule figures:
    input:
        expand(f"{FIGURES}/subjects-{{dataset}}.html", dataset=DATASETS),
        expand(f"{FIGURES}/qc_montage-{{dataset}}.{FORMAT}", dataset=DATASETS),
        expand(f"{FIGURES}/loss_curve-{{model}}.{FORMAT}", model=MODELS),
        each_sample(f"{FIGURES}/sample_montage-{{model}}-{{sampler}}-{{steps}}.{FORMAT}"),
        f"{FIGURES}/metric_table.{FORMAT}",
        f"{FIGURES}/sampler_steps.{FORMAT}",
        f"{FIGURES}/provenance.html",


rule figures_subjects:
    input:
        manifest=rules.data_prepare.output.manifest,
    output:
        report(
            f"{FIGURES}/subjects-{{dataset}}.html",
            caption="../report/subjects.rst",
            category="Data",
            labels={"figure": "Subjects, warnings, left out", "of": "{dataset}"},
        ),
    log:
        f"{LOGS}/figures/subjects-{{dataset}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=2_000,
        runtime=10,
    params:
        spec=spec("figure", name="{dataset}"),
        code=code("genaccel.figures.subjects"),
    message:
        "Listing the subjects of {wildcards.dataset}"
    shell:
        "python -m genaccel.figures.subjects --spec {params.spec:q} --code {params.code}"
        " --manifest {input.manifest:q} --out {output:q} 2>&1 | tee {log:q}"


rule figures_qc_montage:
    input:
        manifest=rules.data_prepare.output.manifest,
        volumes=rules.data_prepare.output.volumes,
    output:
        report(
            f"{FIGURES}/qc_montage-{{dataset}}.{FORMAT}",
            caption="../report/qc_montage.rst",
            category="Data",
            labels={"figure": "Prepared subjects", "of": "{dataset}"},
        ),
    log:
        f"{LOGS}/figures/qc_montage-{{dataset}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name="{dataset}"),
        code=code("genaccel.figures.qc_montage"),
    message:
        "Drawing the prepared subjects of {wildcards.dataset}"
    shell:
        "python -m genaccel.figures.qc_montage --spec {params.spec:q} --code {params.code}"
        " --manifest {input.manifest:q} --out {output:q} 2>&1 | tee {log:q}"


rule figures_loss_curve:
    input:
        loss=rules.train_model.output.loss,
    output:
        report(
            f"{FIGURES}/loss_curve-{{model}}.{FORMAT}",
            caption="../report/loss_curve.rst",
            category="Training",
            labels={"figure": "Loss", "of": "{model}"},
        ),
    log:
        f"{LOGS}/figures/loss_curve-{{model}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name="{model}"),
        code=code("genaccel.figures.loss_curve"),
    message:
        "Drawing the loss of {wildcards.model}"
    shell:
        "python -m genaccel.figures.loss_curve --spec {params.spec:q} --code {params.code}"
        " --loss {input.loss:q} --out {output:q} 2>&1 | tee {log:q}"


rule figures_sample_montage:
    input:
        manifest=lambda wildcards: manifest_of(wildcards.model),
        volumes=lambda wildcards: volumes_of(wildcards.model),
        samples=rules.sample_volumes.output[0],
    output:
        report(
            f"{FIGURES}/sample_montage-{{model}}-{{sampler}}-{{steps}}.{FORMAT}",
            caption="../report/sample_montage.rst",
            category="Samples",
            labels={"figure": "Mask, real, synthetic, difference", "of": "{model}, {sampler}, {steps} steps"},
        ),
    log:
        f"{LOGS}/figures/sample_montage-{{model}}-{{sampler}}-{{steps}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name="{model}, {sampler}, {steps} steps"),
        code=code("genaccel.figures.sample_montage"),
    message:
        "Drawing the volumes of {wildcards.model} with {wildcards.sampler} in {wildcards.steps} steps"
    shell:
        "python -m genaccel.figures.sample_montage --spec {params.spec:q} --code {params.code}"
        " --manifest {input.manifest:q} --samples {input.samples:q} --out {output:q} 2>&1 | tee {log:q}"


rule figures_metric_table:
    input:
        table=rules.metrics_table.output[0],
    output:
        figure=report(
            f"{FIGURES}/metric_table.{FORMAT}",
            caption="../report/metric_table.rst",
            category="Metrics",
            labels={"figure": "Scores", "of": "all models"},
        ),
        summary=report(
            f"{FIGURES}/metric_table.csv",
            caption="../report/metric_table.rst",
            category="Metrics",
            labels={"figure": "Scores (CSV)", "of": "all models"},
        ),
    log:
        f"{LOGS}/figures/metric_table.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name=CONFIG.study),
        code=code("genaccel.figures.metric_table"),
    message:
        "Drawing the table of scores"
    shell:
        "python -m genaccel.figures.metric_table --spec {params.spec:q} --code {params.code}"
        " --table {input.table:q} --out {output.figure:q} --summary {output.summary:q} 2>&1 | tee {log:q}"


rule figures_sampler_steps:
    input:
        table=rules.metrics_table.output[0],
    output:
        report(
            f"{FIGURES}/sampler_steps.{FORMAT}",
            caption="../report/sampler_steps.rst",
            category="Metrics",
            labels={"figure": "Scores by sampler and steps", "of": "all models"},
        ),
    log:
        f"{LOGS}/figures/sampler_steps.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name=CONFIG.study),
        code=code("genaccel.figures.sampler_steps"),
    message:
        "Drawing the scores by sampler and steps"
    shell:
        "python -m genaccel.figures.sampler_steps --spec {params.spec:q} --code {params.code}"
        " --table {input.table:q} --out {output:q} 2>&1 | tee {log:q}"


rule figures_provenance:
    input:
        train=expand(rules.train_model.output.run, model=MODELS),
        metrics=each_sample(rules.metrics_score.output.run),
    output:
        report(
            f"{FIGURES}/provenance.html",
            caption="../report/provenance.rst",
            category="Provenance",
            labels={"figure": "Code, settings, machine, weights", "of": "all runs"},
        ),
    log:
        f"{LOGS}/figures/provenance.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=2_000,
        runtime=10,
    params:
        spec=spec("figure", name=CONFIG.study),
        code=code("genaccel.figures.provenance"),
    message:
        "Listing where the measurements came from"
    shell:
        "python -m genaccel.figures.provenance --spec {params.spec:q} --code {params.code}"
        " --out {output:q} {input:q} 2>&1 | tee {log:q}"


rule reference:
    input:
        expand(f"results/figures/{{device}}/metric_table.{FORMAT}", device=REFERENCES),
        expand(f"results/figures/{{device}}/sampler_steps.{FORMAT}", device=REFERENCES),
        expand(f"results/figures/{{device}}/loss_curve.{FORMAT}", device=REFERENCES),
    message:
        "The figures of the committed measurements are in results/figures"


use rule figures_metric_table as reference_metric_table with:
    input:
        table="results/reference/{device}/metrics.csv",
    output:
        figure=f"results/figures/{{device}}/metric_table.{FORMAT}",
        summary="results/figures/{device}/metric_table.csv",
    log:
        "logs/reference/metric_table-{device}.log",
    params:
        spec=spec("figure", name="{device}"),
        code=code("genaccel.figures.metric_table"),
    message:
        "Drawing the scores measured on {wildcards.device}"


use rule figures_sampler_steps as reference_sampler_steps with:
    input:
        table="results/reference/{device}/metrics.csv",
    output:
        f"results/figures/{{device}}/sampler_steps.{FORMAT}",
    log:
        "logs/reference/sampler_steps-{device}.log",
    params:
        spec=spec("figure", name="{device}"),
        code=code("genaccel.figures.sampler_steps"),
    message:
        "Drawing the scores measured on {wildcards.device} by sampler and steps"


use rule figures_loss_curve as reference_loss_curve with:
    input:
        loss="results/reference/{device}/loss.csv",
    output:
        f"results/figures/{{device}}/loss_curve.{FORMAT}",
    log:
        "logs/reference/loss_curve-{device}.log",
    params:
        spec=spec("figure", name="{device}"),
        code=code("genaccel.figures.loss_curve"),
    message:
        "Drawing the loss measured on {wildcards.device}"
