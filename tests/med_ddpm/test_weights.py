"""Weights files: what is read, what is refused and how it is put."""

from __future__ import annotations

import pickle

import pytest
import torch

from genaccel.med_ddpm.fit import settings_of
from genaccel.med_ddpm.schedule import BUFFERS, Schedule
from genaccel.med_ddpm.unet import UNet
from genaccel.med_ddpm.weights import load_weights, network_state, read_metadata, save_weights
from genaccel.spec import SpecError

CHECKPOINTS = ["whole_head_128", "brats_192x192x144"]


def full_size(shapes: dict[str, list[int]]) -> dict[str, torch.Tensor]:
    """A published dictionary without its data; the schedule's buffers are real."""
    weights = {name: torch.empty(shape, device="meta") for name, shape in shapes.items() if name not in BUFFERS}
    return {**weights, **Schedule(250).buffers()}


@pytest.fixture
def published_file(tmp_path, small_state):
    """A small checkpoint as Med-DDPM writes them, after `change` to its dictionary."""

    def write(change=lambda checkpoint: checkpoint, name="model.pt"):
        ema = {**Schedule(250).buffers(), **{f"denoise_fn.{key}": value for key, value in small_state.items()}}
        torch.save(change({"step": 3, "model": {k: v + 1 for k, v in ema.items()}, "ema": ema}), tmp_path / name)
        return tmp_path / name

    return write


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_published_key_list_loads_into_the_full_size_network(name, published, published_shapes):
    state = network_state({"ema": full_size(published_shapes[name])}, published[name], "model.pt")
    with torch.device("meta"):
        model = UNet(published[name])
    assert model.load_state_dict(state, strict=True, assign=True).missing_keys == []


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_renamed_key_is_reported_by_both_names(name, published, published_shapes):
    state = full_size(published_shapes[name])
    state["denoise_fn.middle_block.1.to_qkv.weight"] = state.pop("denoise_fn.middle_block.1.qkv.weight")
    with pytest.raises(SpecError) as fault:
        network_state({"ema": state}, published[name], "model.pt")
    message = str(fault.value)
    assert "1 missing: middle_block.1.qkv.weight;" in message
    assert "1 unexpected: middle_block.1.to_qkv.weight." in message
    assert "keys were renamed or lost" in message


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_the_settings_of_a_published_checkpoint_are_read_from_its_shapes(name, published, published_shapes):
    state = {key.removeprefix("denoise_fn."): value for key, value in full_size(published_shapes[name]).items()}
    spec = published[name]
    assert settings_of(state) == {
        "models.<name>.base_channels": 64,
        "models.<name>.channel_multipliers": [1, 1, 2, 3, 4],
        "models.<name>.num_res_blocks": spec.num_res_blocks,
        "models.<name>.attention_downsampling": 8 if name == "whole_head_128" else 0,
        "number of data.<name>.modalities": len(spec.image),
        "number of models.<name>.condition channels": len(spec.condition),
    }


def test_the_remedy_names_every_setting_that_differs(published, published_shapes, make_spec):
    with pytest.raises(SpecError) as fault:
        network_state({"ema": full_size(published_shapes["brats_192x192x144"])}, make_spec(), "model.pt")
    for part in (
        "models.<name>.base_channels: 64 (now 32)",
        "models.<name>.channel_multipliers: [1, 1, 2, 3, 4] (now [1, 1, 2])",
        "models.<name>.num_res_blocks: 2 (now 1)",
        "models.<name>.attention_downsampling: 0 (now 2)",
        "number of data.<name>.modalities: 4 (now 1)",
        "number of models.<name>.condition channels: 4 (now 2)",
        "input_blocks.0.0.weight [64, 8, 3, 3, 3], expected [32, 3, 3, 3, 3]",
        "more",
    ):
        assert part in str(fault.value)


def prefixed(prefix):
    return lambda checkpoint: {"ema": {prefix + key: value for key, value in checkpoint["ema"].items()}}


@pytest.mark.parametrize(
    "change",
    [
        lambda checkpoint: checkpoint,
        lambda checkpoint: {"model": checkpoint["ema"], "step": 1},
        lambda checkpoint: checkpoint["ema"],
        lambda checkpoint: {k.removeprefix("denoise_fn."): v for k, v in checkpoint["ema"].items() if k not in BUFFERS},
        lambda checkpoint: {k.replace("denoise_fn.", "denoise_fn.module."): v for k, v in checkpoint["ema"].items()},
        lambda checkpoint: {k: v.half() for k, v in checkpoint["ema"].items() if k not in BUFFERS},
        prefixed("module."),
    ],
    ids=["published", "model-alone", "bare-ema", "bare-unet", "parallel-inside", "half", "parallel-outside"],
)
def test_the_average_is_read_from_every_form_of_a_checkpoint(change, published_file, small_state, make_spec):
    state = load_weights(published_file(change), make_spec())
    assert state.keys() == small_state.keys()
    assert all(tensor.dtype == torch.float32 for tensor in state.values())
    assert all(torch.allclose(state[name], small_state[name], atol=1e-3, rtol=1e-3) for name in state)


def test_a_saved_file_gives_back_tensors_and_metadata(tmp_path, small_state, make_spec):
    save_weights(tmp_path / "w.safetensors", small_state, {"timesteps": 250, "spec_sha256": "ab"})
    state = load_weights(tmp_path / "w.safetensors", make_spec())
    assert all(torch.equal(state[name], small_state[name]) for name in small_state)
    assert read_metadata(tmp_path / "w.safetensors") == {"timesteps": 250, "spec_sha256": "ab"}
    assert [file.name for file in tmp_path.iterdir()] == ["w.safetensors"]


def test_equal_weights_make_equal_bytes(tmp_path):
    state = {"b": torch.arange(6.0).reshape(2, 3).T, "a": torch.ones(2)}
    metadata = {letter: letter for letter in "abcdefgh"}
    files = [tmp_path / f"{i}.safetensors" for i in range(4)]
    for file in files:
        save_weights(file, state, metadata)
    assert len({file.read_bytes() for file in files}) == 1


def test_weights_of_another_number_of_steps_name_the_setting(published_file, make_spec):
    with pytest.raises(SpecError, match=r"trained with 250 steps .* set models\.<name>\.timesteps: 250"):
        load_weights(published_file(), make_spec(timesteps=100))


def test_own_weights_of_another_number_of_steps_name_the_setting(tmp_path, small_state, make_spec):
    save_weights(tmp_path / "w.safetensors", small_state, {"timesteps": 100})
    with pytest.raises(SpecError, match=r"trained with 100 steps .* set models\.<name>\.timesteps: 100"):
        load_weights(tmp_path / "w.safetensors", make_spec())


def test_weights_of_another_schedule_are_refused(published_file, make_spec):
    def linear(checkpoint):
        checkpoint["ema"]["betas"] = torch.linspace(1e-4, 0.02, 250)
        return checkpoint

    with pytest.raises(SpecError, match=r"250 betas differ from the cosine schedule of models\.<name>\.timesteps"):
        load_weights(published_file(linear), make_spec())


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"<!DOCTYPE html><html>sign in</html>", "is a web page, not weights"),
        (b"\n <html>", "is a web page, not weights"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"", "not a whole PyTorch checkpoint"),
        (b"PK\x03\x04 cut short", "not a whole PyTorch checkpoint"),
        (b"\x80\x02garbage", "not a whole PyTorch checkpoint"),
        (pickle.dumps([1, 2], protocol=2), "not a whole PyTorch checkpoint|holds a list"),
    ],
)
def test_a_file_that_holds_no_weights_says_what_it_is(content, fault, tmp_path, make_spec):
    (tmp_path / "model.pt").write_bytes(content)
    with pytest.raises(SpecError, match=rf"model\.pt: .*({fault})"):
        load_weights(tmp_path / "model.pt", make_spec())


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_a_file_that_was_cut_short_says_so(suffix, tmp_path, published_file, small_state, make_spec):
    whole = tmp_path / f"whole{suffix}"
    if suffix == ".pt":
        published_file(name=whole.name)
    else:
        save_weights(whole, small_state, {})
    (tmp_path / f"cut{suffix}").write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(SpecError, match=r"not a whole .* copy it again"):
        load_weights(tmp_path / f"cut{suffix}", make_spec())


class Runs:
    """Its unpickling writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_a_file_with_code_is_refused_and_runs_nothing(tmp_path, make_spec):
    torch.save({"ema": Runs(tmp_path / "ran")}, tmp_path / "model.pt")
    with pytest.raises(SpecError, match="Python objects besides tensors"):
        load_weights(tmp_path / "model.pt", make_spec())
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("content", "fault"),
    [({}, "an empty dictionary"), ({"step": 3}, "`step`: int"), ({"ema": {"a": 1}}, r"\[ema\]: .*`a`: int")],
)
def test_a_checkpoint_without_a_state_dict_says_what_it_holds(content, fault, tmp_path, make_spec):
    torch.save(content, tmp_path / "model.pt")
    with pytest.raises(SpecError, match=fault):
        load_weights(tmp_path / "model.pt", make_spec())


def test_another_networks_weights_are_called_that(tmp_path, make_spec):
    torch.save({"layer.weight": torch.zeros(2)}, tmp_path / "model.pt")
    with pytest.raises(SpecError, match=r"1 unexpected: layer\.weight\. The file holds no whole Med-DDPM UNet"):
        load_weights(tmp_path / "model.pt", make_spec())


def test_a_missing_file_names_the_setting(tmp_path, make_spec):
    with pytest.raises(SpecError, match=r"no such weights file; correct train\.weights"):
        load_weights(tmp_path / "nothing.pt", make_spec())
