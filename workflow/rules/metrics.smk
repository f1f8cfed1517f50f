rule metrics:
    input:
        f"{RESULTS}/metrics/metrics.csv",
        each_sample(f"{RESULTS}/metrics/{{model}}/{{sampler}}-{{steps}}-{{variant}}.csv"),


COMPARISON = "{sampler}-{steps}-{variant}-against-{base_sampler}-{base_steps}-{base_variant}"
FEATURE_NETWORK = f"genaccel.metrics.features.{CONFIG.metrics.features.network}"


rule metrics_real:
    input:
        manifest=rules.data_prepare.output.manifest,
        volumes=rules.data_prepare.output.volumes,
        network=CONFIG.metrics.features.weights or [],
    output:
        f"{RESULTS}/metrics/real/{{dataset}}.safetensors",
    log:
        f"{LOGS}/metrics/real-{{dataset}}.log",
    benchmark:
        f"{LOGS}/benchmarks/metrics/real-{{dataset}}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=16_000,
        runtime=240,
        gpu=gpus("metrics"),
    params:
        spec=spec("real"),
        code=code("genaccel.metrics.real", FEATURE_NETWORK),
    message:
        "Extracting the features of the real volumes of {wildcards.dataset}"
    shell:
        "python -m genaccel.metrics.real --spec {params.spec:q} --code {params.code} --threads {threads}"
        " --manifest {input.manifest:q} --out {output:q} 2>&1 | tee {log:q}"


rule metrics_segmenter:
    input:
        manifest=rules.data_prepare.output.manifest,
        volumes=rules.data_prepare.output.volumes,
    output:
        f"{RESULTS}/metrics/segmenter/{{dataset}}.safetensors",
    log:
        f"{LOGS}/metrics/segmenter-{{dataset}}.log",
    benchmark:
        f"{LOGS}/benchmarks/metrics/segmenter-{{dataset}}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=16_000,
        runtime=240,
        gpu=gpus("metrics"),
    params:
        spec=spec("segmenter"),
        code=code("genaccel.metrics.segmenter"),
    message:
        "Training the segmenter of {wildcards.dataset}"
    shell:
        "python -m genaccel.metrics.segmenter --spec {params.spec:q} --code {params.code} --threads {threads}"
        " --manifest {input.manifest:q} --out {output:q} 2>&1 | tee {log:q}"


rule metrics_score:
    input:
        manifest=lambda wildcards: manifest_of(wildcards.model),
        volumes=lambda wildcards: volumes_of(wildcards.model),
        samples=rules.sample_volumes.output[0],
        real=lambda wildcards: of_dataset(rules.metrics_real.output[0], wildcards.model),
        segmenter=lambda wildcards: of_dataset(rules.metrics_segmenter.output[0], wildcards.model),
        network=CONFIG.metrics.features.weights or [],
    output:
        run=f"{RESULTS}/metrics/{{model}}/{{sampler}}-{{steps}}-{{variant}}.json",
        per_volume=f"{RESULTS}/metrics/{{model}}/{{sampler}}-{{steps}}-{{variant}}.csv",
        features=f"{RESULTS}/metrics/{{model}}/{{sampler}}-{{steps}}-{{variant}}.safetensors",
    log:
        f"{LOGS}/metrics/{{model}}-{{sampler}}-{{steps}}-{{variant}}.log",
    benchmark:
        f"{LOGS}/benchmarks/metrics/{{model}}-{{sampler}}-{{steps}}-{{variant}}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=16_000,
        runtime=240,
        gpu=gpus("metrics"),
    params:
        spec=spec("metrics"),
        code=code("genaccel.metrics", FEATURE_NETWORK),
    message:
        "Scoring {wildcards.model} with {wildcards.sampler} in {wildcards.steps} steps, {wildcards.variant}"
    shell:
        "python -m genaccel.metrics --spec {params.spec:q} --code {params.code} --threads {threads}"
        " --manifest {input.manifest:q} --samples {input.samples:q} --real {input.real:q}"
        " --segmenter {input.segmenter:q} --run {output.run:q}"
        " --per-volume {output.per_volume:q} --features {output.features:q} 2>&1 | tee {log:q}"


rule metrics_compare:
    input:
        manifest=lambda wildcards: manifest_of(wildcards.model),
        volumes=lambda wildcards: volumes_of(wildcards.model),
        real=lambda wildcards: of_dataset(rules.metrics_real.output[0], wildcards.model),
        samples=f"{RESULTS}/sample/{{model}}/{{sampler}}-{{steps}}-{{variant}}",
        scores=f"{RESULTS}/metrics/{{model}}/{{sampler}}-{{steps}}-{{variant}}.csv",
        features=f"{RESULTS}/metrics/{{model}}/{{sampler}}-{{steps}}-{{variant}}.safetensors",
        base_samples=f"{RESULTS}/sample/{{model}}/{{base_sampler}}-{{base_steps}}-{{base_variant}}",
        base_scores=f"{RESULTS}/metrics/{{model}}/{{base_sampler}}-{{base_steps}}-{{base_variant}}.csv",
        base_features=f"{RESULTS}/metrics/{{model}}/{{base_sampler}}-{{base_steps}}-{{base_variant}}.safetensors",
    output:
        f"{RESULTS}/metrics/{{model}}/compare/{COMPARISON}.json",
    log:
        f"{LOGS}/metrics/{{model}}-compare-{COMPARISON}.log",
    benchmark:
        f"{LOGS}/benchmarks/metrics/{{model}}-compare-{COMPARISON}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=16_000,
        runtime=60,
        gpu=gpus("metrics"),
    params:
        spec=spec("compare"),
        code=code("genaccel.metrics.compare"),
    message:
        "Comparing {wildcards.model}, {wildcards.sampler} in {wildcards.steps} steps, {wildcards.variant},"
        " with {wildcards.base_sampler} in {wildcards.base_steps} steps, {wildcards.base_variant}"
    shell:
        "python -m genaccel.metrics.compare --spec {params.spec:q} --code {params.code} --threads {threads}"
        " --manifest {input.manifest:q} --real {input.real:q}"
        " --samples {input.samples:q} --scores {input.scores:q} --features {input.features:q}"
        " --baseline-samples {input.base_samples:q} --baseline-scores {input.base_scores:q}"
        " --baseline-features {input.base_features:q} --run {output:q} 2>&1 | tee {log:q}"


rule metrics_table:
    input:
        each_sample(f"{RESULTS}/metrics/{{model}}/{{sampler}}-{{steps}}-{{variant}}.json"),
        each_comparison(f"{RESULTS}/metrics/{{model}}/compare/{COMPARISON}.json"),
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
