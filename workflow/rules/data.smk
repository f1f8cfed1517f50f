# Read while parsing: from an error inside an input function Snakemake concludes that no rule makes the
# manifest, and an old manifest then passes for up to date.
with config_errors():
    SOURCES = {dataset: data_source(dataset) for dataset in DATASETS}
    check_splits(CONFIG)
    check_files(CONFIG)


rule data:
    input:
        expand(f"{RESULTS}/data/{{dataset}}/manifest.json", dataset=DATASETS),
        expand(f"{RESULTS}/data/{{dataset}}/volumes", dataset=DATASETS),


rule data_simulate:
    output:
        directory(f"{RESULTS}/data/{{dataset}}/simulated"),
    log:
        f"{LOGS}/data/{{dataset}}-simulate.log",
    benchmark:
        f"{LOGS}/benchmarks/data/{{dataset}}-simulate.jsonl"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=4_000,
        runtime=30,
    params:
        spec=spec("simulate"),
        code=code("genaccel.data.simulate"),
    message:
        "Simulating the subjects of {wildcards.dataset}"
    shell:
        "python -m genaccel.data.simulate --spec {params.spec:q} --code {params.code} --out {output:q}"
        " 2>&1 | tee {log:q}"


rule data_prepare:
    input:
        unpack(lambda wildcards: SOURCES[wildcards.dataset]),
    output:
        manifest=f"{RESULTS}/data/{{dataset}}/manifest.json",
        volumes=directory(f"{RESULTS}/data/{{dataset}}/volumes"),
    log:
        f"{LOGS}/data/{{dataset}}.log",
    benchmark:
        f"{LOGS}/benchmarks/data/{{dataset}}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=16_000,
        runtime=240,
    params:
        spec=spec("data"),
        code=code("genaccel.data"),
        # Which splits later stages need decides nothing of what is made: not compared, since it takes `threads`.
        needed=lambda wildcards, threads: splits_of_dataset(CONFIG, wildcards.dataset),
        samples=lambda wildcards, input: CONFIG.data[wildcards.dataset].samples or f"{input.simulated}/samples.tsv",
    message:
        "Preparing the subjects of {wildcards.dataset}"
    shell:
        "python -m genaccel.data --spec {params.spec:q} --code {params.code} --threads {threads}"
        " --samples {params.samples:q} --manifest {output.manifest:q} --volumes {output.volumes:q}"
        " --needed {params.needed} 2>&1 | tee {log:q}"
