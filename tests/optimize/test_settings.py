"""What the block `optimize` admits, and what it hands to jobs."""

from __future__ import annotations

import pytest

from genaccel.config.compose import compose, optimize_job, optimize_variants
from genaccel.spec import SpecError
from genaccel.variants import BASELINES


def optimize(**settings):
    return compose({"optimize": settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"variants": ["fsat"]}, "optimize.variants: unknown variant 'fsat'; did you mean `fast`?"),
        ({"variants": ["fast", "fast"]}, "names one twice; leave one out"),
        (
            {"sizes": [6]},
            "optimize.sizes, models.med_ddpm: shape: the side of 6 voxels along R cannot be halved 2 times",
        ),
        ({"sizes": [0]}, "optimize.sizes.0"),
        ({"sizes": []}, "optimize.sizes"),
        ({"batches": [1, 1]}, "names one twice"),
        ({"repeats": 0}, "optimize.repeats: input should be greater than or equal to 1"),
        (
            {"volumes": [{"variant": "bf16", "sampler": "ddim", "steps": 5}]},
            "optimize.volumes.0.variant: 'bf16' is not among the measured variants; add it to optimize.variants",
        ),
        ({"volumes": [{"variant": "fast", "sampler": "dddim"}]}, "unknown sampler 'dddim'; did you mean `ddim`?"),
        (
            {"volumes": [{"variant": "fast", "sampler": "ddim", "steps": 251}]},
            "optimize.volumes.0.steps: 251 exceeds the 250 steps of models.med_ddpm.timesteps",
        ),
        ({"volumes": [{"variant": "fast", "sampler": "ddim", "step": 2}]}, "unknown key; did you mean `steps`?"),
        ({"define": {}}, "optimize.define: unknown key"),
    ],
)
def test_a_fault_is_caught_while_parsing_with_its_key_and_remedy(settings, message):
    with pytest.raises(SpecError) as error:
        optimize(**settings)
    assert message in str(error.value)


def test_the_baselines_are_always_measured_once():
    assert optimize_variants(optimize(variants=["fast", "fp32_strict"])) == [*BASELINES, "fast"]


def test_no_variant_switches_the_stage_off_whatever_else_it_says():
    volumes = [{"variant": "fast", "sampler": "ddim", "steps": 5}]
    assert optimize_variants(optimize(variants=[], volumes=volumes)) == []


def test_a_study_s_own_variant_is_measured_as_it_is_defined():
    config = compose({"variants": {"mine": {"like": "fast", "cuda_graphs": False}}, "optimize": {"variants": ["mine"]}})
    switches = optimize_job(config, "auto", "med_ddpm", "mine").switches
    assert (switches.kernels, switches.cuda_graphs) == ("fused", False)


def test_sizes_are_sides_of_cubes_or_three_sides_or_the_models_own_grid():
    assert optimize_job(optimize(), "auto", "med_ddpm", "tf32").shapes == ((20, 20, 20),)
    job = optimize_job(optimize(sizes=[8, [8, 16, 4]]), "auto", "med_ddpm", "tf32")
    assert [cell.case for cell in job.cells()] == [{"size": 8, "batch": 1}, {"size": "8x16x4", "batch": 1}]
    # The tensor's axes are those of the published whole-head network: S, A, R.
    assert [cell.size(job.model) for cell in job.cells()] == [(8, 8, 8), (4, 16, 8)]


def test_a_sampler_without_steps_runs_all_of_the_schedule():
    volumes = [{"variant": "fast", "sampler": "ddpm", "steps": 5}, {"variant": "fast", "sampler": "ddim"}]
    config = optimize(volumes=volumes)
    assert [(v.sampler, v.steps) for v in optimize_job(config, "auto", "med_ddpm", "fast").volumes] == [
        ("ddpm", 250),
        ("ddim", 250),
    ]
    assert optimize_job(config, "auto", "med_ddpm", "tf32").volumes == ()


def test_a_job_does_not_hang_on_the_other_variants():
    few, many = optimize(variants=["tf32"]), optimize(variants=["bf16", "tf32"])
    assert optimize_job(few, "auto", "med_ddpm", "tf32") == optimize_job(many, "auto", "med_ddpm", "tf32")


@pytest.mark.parametrize(
    ("raw", "same"),
    [
        ({"device": "cpu"}, True),
        ({"optimize": {"repeats": 50, "warmup": 9, "budget_s": 99}}, True),
        ({"optimize": {"sizes": [8], "batches": [2]}}, True),
        ({"data": {"simulated": {"shape": [24, 24, 24], "modalities": ["flair"]}}}, True),
        ({"data": {"simulated": {"modalities": ["t1", "flair"]}}}, False),
        ({"models": {"med_ddpm": {"attention_downsampling": 2}}}, False),
        ({"optimize": {"seed": 1}}, False),
        ({"models": {"med_ddpm": {"base_channels": 64}}}, False),
    ],
)
def test_the_workload_is_the_work_and_not_how_often_or_where_it_is_timed(raw, same):
    before, after = (
        optimize_job(compose(c), c.get("device", "auto"), "med_ddpm", "tf32").workload() for c in ({}, raw)
    )
    assert (before == after) is same


def test_variants_share_their_workload_so_that_they_compare():
    tf32, fast = (optimize_job(optimize(), "auto", "med_ddpm", name) for name in ("tf32", "fast"))
    assert tf32.workload() == fast.workload()
