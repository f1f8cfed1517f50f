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
        code=code("genaccel.train"),
        conduct=lambda wildcards, threads: job(CONFIG, "conduct", model=wildcards.model).canonical(),
    message:
        "Training {wildcards.model}"
    shell:
        "python -m genaccel.train --spec {params.spec:q} --code {params.code} --threads {threads}"
        " --conduct {params.conduct:q} --manifest {input.manifest:q} --weights {output.weights:q} --loss {output.loss:q} --measurement {output.run:q}"
        f" --checkpoints {RESULTS}/train/{{wildcards.model}}/checkpoints 2>&1 | tee {{log:q}}"
