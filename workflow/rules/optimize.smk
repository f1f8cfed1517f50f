# Off where the config measures no variant. A speed needs no trained weights, and so no data.
OPTIMIZE_TABLE = [f"{RESULTS}/optimize/optimize.csv"] if CONFIG.optimize.variants else []


rule optimize:
    input:
        OPTIMIZE_TABLE,


rule optimize_measure:
    output:
        f"{RESULTS}/optimize/{{model}}/{{variant}}.json",
    log:
        f"{LOGS}/optimize/{{model}}-{{variant}}.log",
    benchmark:
        f"{LOGS}/benchmarks/optimize/{{model}}-{{variant}}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=32_000,
        runtime=240,
        gpu=gpus("optimize"),
    params:
        spec=spec("optimize"),
        code=code(
            "genaccel.optimize",
            "genaccel.optimize.cell",
            lambda wildcards: variant_module(wildcards.variant),
            lambda wildcards: volume_samplers(wildcards.model, wildcards.variant),
        ),
    message:
        "Measuring {wildcards.model}, {wildcards.variant}"
    shell:
        "python -m genaccel.optimize --spec {params.spec:q} --code {params.code} --threads {threads}"
        " --run {output:q} 2>&1 | tee {log:q}"


rule optimize_table:
    input:
        each_measured(f"{RESULTS}/optimize/{{model}}/{{variant}}.json"),
    output:
        f"{RESULTS}/optimize/optimize.csv",
    log:
        f"{LOGS}/optimize/table.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=2_000,
        runtime=10,
    params:
        code=code("genaccel.table"),
    message:
        "Gathering the speeds"
    shell:
        "python -m genaccel.table --code {params.code} --out {output:q} {input:q} 2>&1 | tee {log:q}"
