import copy

import pytest
import torch

from genaccel.med_ddpm.fast import FusedTraining, fused_network
from genaccel.spec import SpecError

NETWORKS = [
    # multipliers, blocks a level, downsampling with attention, image channels, batch, sides
    ((1, 2, 3), 1, 2, 1, 2, (4, 8, 4)),
    ((1, 2), 2, 0, 4, 1, (2, 6, 4)),
    # A level narrower than the next: its skip connection is the identity over two volumes.
    ((2, 1), 1, 1, 1, 1, (4, 4, 4)),
]


def batch_of(image, batch, sides):
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(batch, image + 2, *sides, generator=generator)
    noise = torch.randn(batch, image, *sides, generator=generator)
    return inputs, torch.randint(0, 250, (batch,), generator=generator), noise


@pytest.mark.parametrize(("multipliers", "blocks", "attention", "image", "batch", "sides"), NETWORKS)
def test_noise_and_gradients_are_those_of_the_stock_network_in_fp64(
    make_network, error, multipliers, blocks, attention, image, batch, sides
):
    model = make_network(multipliers, blocks, attention, image)
    exact = copy.deepcopy(model).double()
    inputs, t, noise = batch_of(image, batch, sides)
    reference = exact(inputs.double(), t)
    loss = (reference - noise).abs().mean()
    loss.backward()

    assert error(fused_network(model, dtype=torch.float32)(inputs, t), reference) < 1e-5
    training = FusedTraining(model, 1e-3, 0.9, dtype=torch.float32)
    assert abs(float(training.accumulate(inputs, t, noise) - loss)) < 1e-5
    whole = torch.stack([p.grad.norm() for p in exact.parameters()]).norm()
    for name, parameter in exact.named_parameters():
        difference = training.network.layout.view(training.gradient, name) - parameter.grad
        # Of the whole gradient, since a bias before a norm of one channel a group has none but rounding.
        assert float(difference.norm() / whole) < 1e-6, name


def test_bf16_volumes_cost_a_hundredth(make_network, error):
    model = make_network(base=64)
    inputs, t, _ = batch_of(1, 2, (4, 4, 8))
    reference = copy.deepcopy(model).double()(inputs.double(), t)
    assert error(fused_network(model)(inputs, t), reference) < 2e-2


def test_training_takes_the_steps_of_torchs_adam(make_network, error):
    model = make_network()
    plain = copy.deepcopy(model)
    optimizer = torch.optim.Adam(plain.parameters(), lr=1e-3)
    training = FusedTraining(model, 1e-3, ema_decay=0.5, dtype=torch.float32)
    average = {name: p.detach().clone() for name, p in plain.named_parameters()}
    inputs, t, noise = batch_of(1, 2, (4, 4, 4))
    for _ in range(3):
        optimizer.zero_grad()
        loss = (plain(inputs, t) - noise).abs().mean()
        loss.backward()
        optimizer.step()
        for name, p in plain.named_parameters():
            average[name].lerp_(p.detach(), 0.5)
        assert abs(float(training.step(inputs, t, noise) - loss)) < 1e-4
    # Adam divides by the gradient's own size, which magnifies the rounding of a vanishing one.
    for name, value in plain.state_dict().items():
        assert float((model.state_dict()[name] - value).abs().max()) < 2e-3, name
        assert float((training.averages()[name] - average[name]).abs().max()) < 2e-3, name


def test_a_batch_in_parts_gives_the_gradient_of_the_whole(make_network, error):
    inputs, t, noise = batch_of(1, 2, (4, 4, 4))
    # So small a rate that the gradient stays what it was.
    whole, parts = (FusedTraining(make_network(), 1e-9, 0.9, dtype=torch.float32) for _ in range(2))
    whole.accumulate(inputs, t, noise)
    for i in range(2):
        here = slice(i, i + 1)
        parts.accumulate(inputs[here], t[here], noise[here], 0.5)
    assert error(parts.gradient, whole.gradient) < 1e-5
    before = parts.gradient.clone()
    parts.update()
    parts.accumulate(inputs, t, noise)
    assert error(parts.gradient, before) < 1e-2


def test_training_resumes_where_its_state_was_taken(make_network):
    batch = batch_of(1, 1, (4, 4, 4))
    first, second = (FusedTraining(make_network(), 1e-3, 0.9) for _ in range(2))
    models = []
    first.step(*batch)
    second.network.weights.copy_(first.network.weights)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for training in (first, second):
        training.step(*batch)
        models.append(training.network.weights.clone())
    assert torch.equal(*models)


def test_dropout_is_refused(make_network):
    with pytest.raises(SpecError, match=r"set models\.<name>\.dropout: 0"):
        FusedTraining(make_network(dropout=0.1), 1e-3, 0.9)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
def test_recorded_steps_are_those_that_were_recorded(make_network):
    batch = [value.cuda() for value in batch_of(1, 2, (8, 8, 8))]
    weights = []
    for graphs in (False, True):
        training = FusedTraining(make_network(base=64).cuda(), 1e-3, 0.9, cuda_graphs=graphs)
        for _ in range(3):
            training.step(*batch)
        weights.append(training.network.weights)
    assert torch.equal(*weights)
