rule metrics:
    input:
        f"{RESULTS}/metrics/metrics.csv",


rule metrics_score:
    input:
        manifest=lambda wildcards: manifest_of(wildcards.model),
        volumes=lambda wildcards: volumes_of(wildcards.model),
        samples=rules.sample_volumes.output[0],
    output:
        run=f"{RESULTS}/metrics/{{model}}/{{sampler}}.json",
        per_volume=f"{RESULTS}/metrics/{{model}}/{{sampler}}.csv",
    log:
        f"{LOGS}/metrics/{{model}}-{{sampler}}.log",
    benchmark:
        f"{LOGS}/benchmarks/metrics/{{model}}-{{sampler}}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=16_000,
        runtime=240,
        gpu=lambda wildcards: gpus("metrics", wildcards.model),
    params:
        spec=spec("metrics"),
        code=code("genaccel.metrics", FEATURES.module(CONFIG.metrics.features)),
    message:
        "Scoring {wildcards.model} with {wildcards.sampler}"
    shell:
        "python -m genaccel.metrics --spec {params.spec:q} --code {params.code} --threads {threads}"
        " --manifest {input.manifest:q} --samples {input.samples:q} --run {output.run:q}"
        " --per-volume {output.per_volume:q} 2>&1 | tee {log:q}"


rule metrics_table:
    input:
        each_sample(f"{RESULTS}/metrics/{{model}}/{{sampler}}.json"),
    output:
        f"{RESULTS}/metrics/metrics.csv",
    log:
        f"{LOGS}/metrics/table.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=2_000,
        runtime=10,
    params:
        code=code("genaccel.table"),
    message:
        "Gathering the scores"
    shell:
        "python -m genaccel.table --code {params.code} --out {output:q} {input:q} 2>&1 | tee {log:q}"
