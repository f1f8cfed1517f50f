rule train:
    input:
        expand(f"{RESULTS}/train/{{model}}/weights.safetensors", model=MODELS),


rule train_model:
    input:
        manifest=lambda wildcards: manifest_of(wildcards.model),
        volumes=lambda wildcards: volumes_of(wildcards.model),
        weights=lambda wildcards: job(CONFIG, "train", model=wildcards.model).train.weights or [],
    output:
        weights=f"{RESULTS}/train/{{model}}/weights.safetensors",
        loss=f"{RESULTS}/train/{{model}}/loss.csv",
        run=f"{RESULTS}/train/{{model}}/run.json",
    log:
        f"{LOGS}/train/{{model}}.log",
    benchmark:
        f"{LOGS}/benchmarks/train/{{model}}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=32_000,
        runtime=1440,
        gpu=lambda wildcards: gpus("train", wildcards.model),
    # Snakemake does not compare a param that takes `threads`: how often to write checkpoints reruns nothing.
    params:
        spec=spec("train"),
        code=code("genaccel.train", lambda wildcards: job(CONFIG, "train", model=wildcards.model).switches.module),
        conduct=lambda wildcards, threads: job(CONFIG, "conduct", model=wildcards.model).canonical(),
    message:
        "Training {wildcards.model}"
    shell:
        "python -m genaccel.train --spec {params.spec:q} --code {params.code} --threads {threads}"
        " --conduct {params.conduct:q} --manifest {input.manifest:q} --weights {output.weights:q} --loss {output.loss:q} --measurement {output.run:q}"
        f" --checkpoints {RESULTS}/train/{{wildcards.model}}/checkpoints 2>&1 | tee {{log:q}}"


# Where models differ in seed and variant alone, their losses are compared.
rule train_curves:
    input:
        runs=lambda wildcards: curve_files(rules.train_model.output.run, wildcards.variant),
        losses=lambda wildcards: curve_files(rules.train_model.output.loss, wildcards.variant),
        base_runs=lambda wildcards: baseline_files(rules.train_model.output.run, wildcards.variant),
        base_losses=lambda wildcards: baseline_files(rules.train_model.output.loss, wildcards.variant),
    output:
        f"{RESULTS}/train/curves/{{variant}}.json",
    log:
        f"{LOGS}/train/curves-{{variant}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=2_000,
        runtime=10,
    params:
        spec=spec("curves"),
        code=code("genaccel.train.curves"),
    message:
        "Gathering the losses of {wildcards.variant}"
    shell:
        "python -m genaccel.train.curves --spec {params.spec:q} --code {params.code}"
        " --runs {input.runs:q} --losses {input.losses:q} --baseline-runs {input.base_runs:q}"
        " --baseline-losses {input.base_losses:q} --out {output:q} 2>&1 | tee {log:q}"


rule train_curves_table:
    input:
        expand(f"{RESULTS}/train/curves/{{variant}}.json", variant=CURVES),
    output:
        f"{RESULTS}/train/curves.csv",
    log:
        f"{LOGS}/train/curves-table.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=2_000,
        runtime=10,
    params:
        code=code("genaccel.table"),
    message:
        "Gathering the losses of all variants"
    shell:
        "python -m genaccel.table --code {params.code} --out {output:q} {input:q} 2>&1 | tee {log:q}"
