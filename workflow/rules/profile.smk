# Off where the config profiles no variant: then there is no table either, and no figure of it.
PROFILE_TABLE = [f"{RESULTS}/profile/profile.csv"] if CONFIG.profile.variants else []


rule profile:
    input:
        PROFILE_TABLE,
        each_profile(f"{RESULTS}/profile/{{device}}/{{model}}/{{variant}}.trace.json.gz"),


rule profile_model:
    output:
        run=f"{RESULTS}/profile/{{device}}/{{model}}/{{variant}}.json",
        trace=f"{RESULTS}/profile/{{device}}/{{model}}/{{variant}}.trace.json.gz",
    log:
        f"{LOGS}/profile/{{device}}-{{model}}-{{variant}}.log",
    benchmark:
        f"{LOGS}/benchmarks/profile/{{device}}-{{model}}-{{variant}}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=32_000,
        runtime=120,
        gpu=lambda wildcards: gpus("profile", device=wildcards.device),
        gpu_model=lambda wildcards: gpu_model(wildcards.device),
    params:
        spec=spec("profile"),
        code=code("genaccel.profile", lambda wildcards: variant_module(wildcards.variant)),
    message:
        "Profiling {wildcards.model}, {wildcards.variant} on {wildcards.device}"
    shell:
        "python -m genaccel.profile --spec {params.spec:q} --code {params.code} --threads {threads}"
        " --run {output.run:q} --trace {output.trace:q} 2>&1 | tee {log:q}"


rule profile_table:
    input:
        each_profile(f"{RESULTS}/profile/{{device}}/{{model}}/{{variant}}.json"),
        other_runs(),
    output:
        f"{RESULTS}/profile/profile.csv",
    log:
        f"{LOGS}/profile/table.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=2_000,
        runtime=10,
    params:
        code=code("genaccel.table"),
    message:
        "Gathering the profiles"
    shell:
        "python -m genaccel.table --code {params.code} --stage profile --out {output:q} {input:q} 2>&1 | tee {log:q}"
