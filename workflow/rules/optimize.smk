# Off where the config measures no variant. A speed needs no trained weights, and so no data.
OPTIMIZE_TABLE = [f"{RESULTS}/optimize/optimize.csv"] if CONFIG.optimize.variants else []


rule optimize:
    input:
        OPTIMIZE_TABLE,


rule optimize_measure:
    output:
        f"{RESULTS}/optimize/{{device}}/{{model}}/{{variant}}.json",
    log:
        f"{LOGS}/optimize/{{device}}-{{model}}-{{variant}}.log",
    benchmark:
        f"{LOGS}/benchmarks/optimize/{{device}}-{{model}}-{{variant}}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=32_000,
        runtime=240,
        gpu=lambda wildcards: gpus("optimize", device=wildcards.device),
        gpu_model=lambda wildcards: gpu_model(wildcards.device),
    params:
        spec=spec("optimize"),
        code=code(
            "genaccel.optimize",
            "genaccel.optimize.cell",
            lambda wildcards: variant_module(wildcards.variant),
            lambda wildcards: volume_samplers(wildcards.device, wildcards.model, wildcards.variant),
        ),
    message:
        "Measuring {wildcards.model}, {wildcards.variant} on {wildcards.device}"
    shell:
        "python -m genaccel.optimize --spec {params.spec:q} --code {params.code} --threads {threads}"
        " --run {output:q} 2>&1 | tee {log:q}"


rule optimize_table:
    input:
        each_measured(f"{RESULTS}/optimize/{{device}}/{{model}}/{{variant}}.json"),
        other_runs(),
    output:
        table=f"{RESULTS}/optimize/optimize.csv",
        warnings=f"{RESULTS}/optimize/warnings.txt",
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
        "python -m genaccel.table --code {params.code} --stage optimize --out {output.table:q}"
        " --warnings {output.warnings:q} {input:q} 2>&1 | tee {log:q}"
