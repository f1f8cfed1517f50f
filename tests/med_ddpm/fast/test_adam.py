import pytest
import torch

from genaccel.med_ddpm.fast.adam import adam_ema, flat_state


@pytest.mark.parametrize(("decay", "start", "interval"), [(0.9, 3, 1), (0.995, 1, 2)])
def test_weights_and_average_follow_torch(device, error, decay, start, interval):
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(2500, generator=generator)
    exact = torch.nn.Parameter(weights.double())
    optimizer, average = torch.optim.Adam([exact], lr=1e-2), weights.double()
    state, step = flat_state(weights.clone().to(device)), torch.zeros((), dtype=torch.int64, device=device)
    for number in range(1, 6):
        gradient = torch.randn(2500, generator=generator)
        exact.grad = gradient.double()
        optimizer.step()
        if number % interval == 0:
            average = exact.detach().clone() if number < start else torch.lerp(average, exact.detach(), 1 - decay)
        step += 1
        adam_ema(state, gradient.to(device), step, 1e-2, decay, start, interval)
    assert error(state.weights, exact) < 1e-6
    assert error(state.average, average) < 1e-6
    # Triton's interpreter cuts BF16 off where a GPU rounds: one unit in the last place.
    assert error(state.half, exact) < 2**-8
