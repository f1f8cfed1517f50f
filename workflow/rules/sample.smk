rule sample:
    input:
        each_sample(f"{RESULTS}/sample/{{model}}/{{sampler}}-{{steps}}-{{variant}}"),


rule sample_volumes:
    input:
        manifest=lambda wildcards: manifest_of(wildcards.model),
        volumes=lambda wildcards: volumes_of(wildcards.model),
        weights=rules.train_model.output.weights,
    output:
        directory(f"{RESULTS}/sample/{{model}}/{{sampler}}-{{steps}}-{{variant}}"),
    log:
        f"{LOGS}/sample/{{model}}-{{sampler}}-{{steps}}-{{variant}}.log",
    benchmark:
        f"{LOGS}/benchmarks/sample/{{model}}-{{sampler}}-{{steps}}-{{variant}}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=32_000,
        runtime=1440,
        gpu=gpus("sample"),
    params:
        spec=spec("sample"),
        code=code(
            "genaccel.sample",
            lambda wildcards: SAMPLERS.module(wildcards.sampler),
            lambda wildcards: variant_module(wildcards.variant),
        ),
    message:
        "Sampling {wildcards.model} with {wildcards.sampler} in {wildcards.steps} steps, {wildcards.variant}"
    shell:
        "python -m genaccel.sample --spec {params.spec:q} --code {params.code} --threads {threads}"
        " --manifest {input.manifest:q} --weights {input.weights:q} --out {output:q} 2>&1 | tee {log:q}"
