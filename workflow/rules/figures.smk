FIGURES = f"{RESULTS}/figures"
FORMAT = CONFIG.figures.format
# Drawn from the table of the stage `profile`, where there is one.
OF_PROFILE = [
    "kernel_breakdown",
    "instruction_mix",
    "memory_system",
    "warp_states",
    "priority_scores",
    "counters_change",
]


rule figures:
    input:
        expand(f"{FIGURES}/subjects-{{dataset}}.html", dataset=DATASETS),
        expand(f"{FIGURES}/qc_montage-{{dataset}}.{FORMAT}", dataset=DATASETS),
        expand(f"{FIGURES}/loss_curve-{{model}}.{FORMAT}", model=MODELS),
        each_sample(f"{FIGURES}/sample_montage-{{model}}-{{sampler}}-{{steps}}-{{variant}}.{FORMAT}"),
        f"{FIGURES}/metric_table.{FORMAT}",
        f"{FIGURES}/sampler_steps.{FORMAT}",
        expand(f"{FIGURES}/{{figure}}.{FORMAT}", figure=OF_PROFILE if CONFIG.profile.variants else []),
        [f"{FIGURES}/speedups.{FORMAT}"] if OPTIMIZE_TABLE else [],
        [f"{FIGURES}/training_curves.{FORMAT}"] if CURVES else [],
        f"{FIGURES}/provenance.html",


# Of a study of training curves this alone: `genaccel run --config config/curves.yaml -- curves`.
rule curves:
    input:
        [f"{FIGURES}/training_curves.{FORMAT}"] if CURVES else [],


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
            f"{FIGURES}/sample_montage-{{model}}-{{sampler}}-{{steps}}-{{variant}}.{FORMAT}",
            caption="../report/sample_montage.rst",
            category="Samples",
            labels={
                "figure": "Mask, real, synthetic, difference",
                "of": "{model}, {sampler}, {steps} steps, {variant}",
            },
        ),
    log:
        f"{LOGS}/figures/sample_montage-{{model}}-{{sampler}}-{{steps}}-{{variant}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name="{model}, {sampler}, {steps} steps, {variant}"),
        code=code("genaccel.figures.sample_montage"),
    message:
        "Drawing the volumes of {wildcards.model} with {wildcards.sampler} in {wildcards.steps} steps, {wildcards.variant}"
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


rule figures_kernel_breakdown:
    input:
        table=rules.profile_table.output[0],
    output:
        report(
            f"{FIGURES}/kernel_breakdown.{FORMAT}",
            caption="../report/kernel_breakdown.rst",
            category="Profile",
            labels={"figure": "Time by class of kernel", "of": "all models"},
        ),
    log:
        f"{LOGS}/figures/kernel_breakdown.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name=CONFIG.study),
        code=code("genaccel.figures.kernel_breakdown"),
    message:
        "Drawing where a step's time goes"
    shell:
        "python -m genaccel.figures.kernel_breakdown --spec {params.spec:q} --code {params.code}"
        " --table {input.table:q} --out {output:q} 2>&1 | tee {log:q}"


rule figures_instruction_mix:
    input:
        table=rules.profile_table.output[0],
    output:
        report(
            f"{FIGURES}/instruction_mix.{FORMAT}",
            caption="../report/instruction_mix.rst",
            category="Profile",
            labels={"figure": "Instructions by pipe", "of": "all models"},
        ),
    log:
        f"{LOGS}/figures/instruction_mix.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name=CONFIG.study),
        code=code("genaccel.figures.instruction_mix"),
    message:
        "Drawing the executed instructions by pipe"
    shell:
        "python -m genaccel.figures.instruction_mix --spec {params.spec:q} --code {params.code}"
        " --table {input.table:q} --out {output:q} 2>&1 | tee {log:q}"


rule figures_memory_system:
    input:
        table=rules.profile_table.output[0],
    output:
        report(
            f"{FIGURES}/memory_system.{FORMAT}",
            caption="../report/memory_system.rst",
            category="Profile",
            labels={"figure": "Throughput and hit rates", "of": "all models"},
        ),
    log:
        f"{LOGS}/figures/memory_system.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name=CONFIG.study),
        code=code("genaccel.figures.memory_system"),
    message:
        "Drawing the use of the memories"
    shell:
        "python -m genaccel.figures.memory_system --spec {params.spec:q} --code {params.code}"
        " --table {input.table:q} --out {output:q} 2>&1 | tee {log:q}"


rule figures_warp_states:
    input:
        table=rules.profile_table.output[0],
    output:
        report(
            f"{FIGURES}/warp_states.{FORMAT}",
            caption="../report/warp_states.rst",
            category="Profile",
            labels={"figure": "Warp states", "of": "all models"},
        ),
    log:
        f"{LOGS}/figures/warp_states.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name=CONFIG.study),
        code=code("genaccel.figures.warp_states"),
    message:
        "Drawing what warps wait for"
    shell:
        "python -m genaccel.figures.warp_states --spec {params.spec:q} --code {params.code}"
        " --table {input.table:q} --out {output:q} 2>&1 | tee {log:q}"


rule figures_priority_scores:
    input:
        table=rules.profile_table.output[0],
    output:
        report(
            f"{FIGURES}/priority_scores.{FORMAT}",
            caption="../report/priority_scores.rst",
            category="Profile",
            labels={"figure": "Priority scores", "of": "all models"},
        ),
    log:
        f"{LOGS}/figures/priority_scores.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name=CONFIG.study),
        code=code("genaccel.figures.priority_scores"),
    message:
        "Drawing the estimated speed-ups"
    shell:
        "python -m genaccel.figures.priority_scores --spec {params.spec:q} --code {params.code}"
        " --table {input.table:q} --out {output:q} 2>&1 | tee {log:q}"


rule figures_counters_change:
    input:
        table=rules.profile_table.output[0],
    output:
        report(
            f"{FIGURES}/counters_change.{FORMAT}",
            caption="../report/counters_change.rst",
            category="Profile",
            labels={"figure": "Counters before and after", "of": "all models"},
        ),
    log:
        f"{LOGS}/figures/counters_change.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name=CONFIG.study),
        code=code("genaccel.figures.counters_change"),
    message:
        "Drawing the counters against the baseline"
    shell:
        "python -m genaccel.figures.counters_change --spec {params.spec:q} --code {params.code}"
        " --table {input.table:q} --out {output:q} 2>&1 | tee {log:q}"


rule figures_training_curves:
    input:
        table=rules.train_curves_table.output[0],
    output:
        report(
            f"{FIGURES}/training_curves.{FORMAT}",
            caption="../report/training_curves.rst",
            category="Training",
            labels={"figure": "Loss by variant and seed", "of": "all models"},
        ),
    log:
        f"{LOGS}/figures/training_curves.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name=CONFIG.study),
        code=code("genaccel.figures.training_curves"),
    message:
        "Drawing the losses of all variants"
    shell:
        "python -m genaccel.figures.training_curves --spec {params.spec:q} --code {params.code}"
        " --table {input.table:q} --out {output:q} 2>&1 | tee {log:q}"


rule figures_speedups:
    input:
        optimize=rules.optimize_table.output.table,
        warnings=rules.optimize_table.output.warnings,
        metrics=rules.metrics_table.output[0],
    output:
        figure=report(
            f"{FIGURES}/speedups.{FORMAT}",
            caption="../report/speedups.rst",
            category="Speed",
            labels={"figure": "Speed-ups with quality", "of": "all models"},
        ),
        summary=report(
            f"{FIGURES}/speedups.csv",
            caption="../report/speedups.rst",
            category="Speed",
            labels={"figure": "Speed-ups with quality (CSV)", "of": "all models"},
        ),
    log:
        f"{LOGS}/figures/speedups.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=10,
    params:
        spec=spec("figure", name=CONFIG.study),
        code=code("genaccel.figures.speedups"),
    message:
        "Drawing the speed-ups"
    shell:
        "python -m genaccel.figures.speedups --spec {params.spec:q} --code {params.code}"
        " --optimize {input.optimize:q} --warnings {input.warnings:q} --metrics {input.metrics:q}"
        " --out {output.figure:q} --summary {output.summary:q} 2>&1 | tee {log:q}"


rule figures_provenance:
    input:
        train=expand(rules.train_model.output.run, model=MODELS),
        metrics=each_sample(rules.metrics_score.output.run),
        compared=each_comparison(rules.metrics_compare.output[0]),
        measured=each_measured(rules.optimize_measure.output[0]),
        profiled=each_profile(rules.profile_model.output.run),
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
        expand(
            f"results/figures/{{device}}/{{figure}}.{FORMAT}",
            device=with_table("profile"),
            figure=OF_PROFILE,
        ),
        expand(f"results/figures/{{device}}/speedups.{FORMAT}", device=with_table("optimize")),
        expand(f"results/figures/{{device}}/training_curves.{FORMAT}", device=with_table("curves")),
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


use rule figures_speedups as reference_speedups with:
    input:
        optimize="results/reference/{device}/optimize.csv",
        metrics="results/reference/{device}/metrics.csv",
    output:
        figure=f"results/figures/{{device}}/speedups.{FORMAT}",
        summary="results/figures/{device}/speedups.csv",
    log:
        "logs/reference/speedups-{device}.log",
    params:
        spec=spec("figure", name="{device}"),
        code=code("genaccel.figures.speedups"),
    message:
        "Drawing the speed-ups measured on {wildcards.device}"


use rule figures_training_curves as reference_training_curves with:
    input:
        table="results/reference/{device}/curves.csv",
    output:
        f"results/figures/{{device}}/training_curves.{FORMAT}",
    log:
        "logs/reference/training_curves-{device}.log",
    params:
        spec=spec("figure", name="{device}"),
        code=code("genaccel.figures.training_curves"),
    message:
        "Drawing the losses of all variants measured on {wildcards.device}"


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


use rule figures_kernel_breakdown as reference_kernel_breakdown with:
    input:
        table="results/reference/{device}/profile.csv",
    output:
        f"results/figures/{{device}}/kernel_breakdown.{FORMAT}",
    log:
        "logs/reference/kernel_breakdown-{device}.log",
    params:
        spec=spec("figure", name="{device}"),
        code=code("genaccel.figures.kernel_breakdown"),
    message:
        "Drawing where a step's time goes, of {wildcards.device}"


use rule figures_instruction_mix as reference_instruction_mix with:
    input:
        table="results/reference/{device}/profile.csv",
    output:
        f"results/figures/{{device}}/instruction_mix.{FORMAT}",
    log:
        "logs/reference/instruction_mix-{device}.log",
    params:
        spec=spec("figure", name="{device}"),
        code=code("genaccel.figures.instruction_mix"),
    message:
        "Drawing the executed instructions by pipe, of {wildcards.device}"


use rule figures_memory_system as reference_memory_system with:
    input:
        table="results/reference/{device}/profile.csv",
    output:
        f"results/figures/{{device}}/memory_system.{FORMAT}",
    log:
        "logs/reference/memory_system-{device}.log",
    params:
        spec=spec("figure", name="{device}"),
        code=code("genaccel.figures.memory_system"),
    message:
        "Drawing the use of the memories, of {wildcards.device}"


use rule figures_warp_states as reference_warp_states with:
    input:
        table="results/reference/{device}/profile.csv",
    output:
        f"results/figures/{{device}}/warp_states.{FORMAT}",
    log:
        "logs/reference/warp_states-{device}.log",
    params:
        spec=spec("figure", name="{device}"),
        code=code("genaccel.figures.warp_states"),
    message:
        "Drawing what warps wait for, of {wildcards.device}"


use rule figures_priority_scores as reference_priority_scores with:
    input:
        table="results/reference/{device}/profile.csv",
    output:
        f"results/figures/{{device}}/priority_scores.{FORMAT}",
    log:
        "logs/reference/priority_scores-{device}.log",
    params:
        spec=spec("figure", name="{device}"),
        code=code("genaccel.figures.priority_scores"),
    message:
        "Drawing the estimated speed-ups, of {wildcards.device}"


use rule figures_counters_change as reference_counters_change with:
    input:
        table="results/reference/{device}/profile.csv",
    output:
        f"results/figures/{{device}}/counters_change.{FORMAT}",
    log:
        "logs/reference/counters_change-{device}.log",
    params:
        spec=spec("figure", name="{device}"),
        code=code("genaccel.figures.counters_change"),
    message:
        "Drawing the counters against the baseline, of {wildcards.device}"
