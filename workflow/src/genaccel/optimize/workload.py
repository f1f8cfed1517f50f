"""The fixed work that a variant is measured on: network, inputs and steps are functions of a seed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from genaccel.device import Device
from genaccel.med_ddpm.network import Network, kernels, sampling_network, training_network
from genaccel.med_ddpm.schedule import Schedule
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.med_ddpm.unet import UNet
from genaccel.sample.noise import VolumeNoise
from genaccel.sample.samplers import SAMPLERS
from genaccel.seeds import derive_seed
from genaccel.train.ema import EMA
from genaccel.train.spec import EMASpec
from genaccel.variant import Variant

LEARNING_RATE = 1e-5
EMA_DECAY = 0.995
"""As published. The average is updated after every step, not every tenth, so that each timed step is the same work."""

ETA = 1.0
"""Fresh noise of the samplers that take it: the default of ``sample.eta``."""


class Workload:
    """The fixed work that a variant is measured on.

    Weights, inputs and noise come from the seed and from generators on the host, so that they are the same for every
    variant and on every device. No method of it sets anything global: call ``device.apply(variant)`` first.

    Args:
        model: the network; its own grid decides nothing but the level with attention, where that follows the side.
        variant: how it runs.
        device: where.
        size: sides of the volumes along the tensor's axes (D, H, W).
        batch: volumes at a time.
        seed: of weights, inputs and noise.
    """

    def __init__(
        self,
        model: MedDDPMSpec,
        variant: Variant,
        device: Device,
        size: tuple[int, int, int],
        batch: int,
        seed: int,
    ) -> None:
        self.model, self.variant, self.device = model, variant, device
        self.size, self.batch, self.seed = tuple(size), batch, seed
        self.schedule = Schedule(model.timesteps).to(device.torch)
        x0, condition = phantom(len(model.image), len(model.condition), self.size, batch, seed)
        noise = self._noise("inputs")()
        self.x0, self.condition, self.noise = (x.to(device.torch) for x in (x0, condition, noise))
        self.t = self.at(model.timesteps // 2)
        self._network: Network | None = None

    def at(self, step: int) -> Tensor:
        """The step for every volume of the batch, (B,) int64 on the device."""
        return torch.full((self.batch,), step, dtype=torch.long, device=self.device.torch)

    def inputs(self, t: Tensor) -> Tensor:
        """What the network gets at ``t``: the clean volumes diffused to it, and their masks; (B, C + C', D, H, W)."""
        return torch.cat([self.schedule.q_sample(self.x0, t, self.noise), self.condition], dim=1)

    def network(self) -> Network:
        """The network as the variant runs it in sampling; one for all calls, as a compiler may take minutes."""
        if self._network is None:
            self._network = sampling_network(seeded_network(self.model, self.seed), self.variant, self.device)
        return self._network

    def release(self) -> None:
        """Drops the network of sampling, so that it does not count in the memory of training."""
        self._network = None
        # What a compiler or a graph holds may be in a cycle.
        gc.collect()

    def denoise(self) -> Callable[[], Tensor]:
        """One denoising step at T // 2: returns the predicted noise, (B, C, D, H, W) FP32."""
        network, inputs = self.network(), self.inputs(self.t)

        def step() -> Tensor:
            predicted = network(inputs, self.t)
            self.device.mark_step()
            return predicted

        return step

    def predictions(self, steps: Sequence[int]) -> dict[int, Tensor]:
        """The noise that the network predicts at each step, on the host: what ``output_rel_error`` compares."""
        network = self.network()
        return {step: network(self.inputs(self.at(step)), self.at(step)).cpu() for step in steps}

    def train(self) -> Callable[[], Tensor]:
        """One training step: diffusion, forward and backward pass, Adam, average of the weights.

        The batch is the same in every step; weights stay FP32. Returns the L1 loss, a scalar on the device that has not
        been waited for.
        """
        model = seeded_network(self.model, self.seed).to(self.device.torch)
        if self.variant.kernels == "fused":
            fused = kernels(self.variant).FusedTraining(
                model, learning_rate=LEARNING_RATE, ema_decay=EMA_DECAY, cuda_graphs=self.variant.cuda_graphs
            )
            return lambda: fused.step(self.inputs(self.t), self.t, self.noise)
        network = training_network(model, self.variant)
        step = self._stock_step(model, network)
        return self.device.graphed(step) if self.variant.cuda_graphs else step

    def _stock_step(self, model: UNet, network: Network) -> Callable[[], Tensor]:
        graphs = self.variant.cuda_graphs
        optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, capturable=graphs)
        average = EMA(model, EMASpec(decay=EMA_DECAY, start=0, interval=1))
        scaler = torch.amp.GradScaler(self.device.torch.type, enabled=self.variant.grad_scaler)

        def step() -> Tensor:
            # Inside a graph gradients must stay where they are.
            optimizer.zero_grad(set_to_none=not graphs)
            with self.device.autocast(self.variant.autocast):
                loss = self.schedule.training_loss(network, self.x0, self.condition, self.t, self.noise)
            scaler.scale(loss).backward()
            self.device.mark_step()
            scaler.step(optimizer)
            scaler.update()
            average.update(model, 1)
            self.device.mark_step()
            return loss.detach()

        return step

    def volume(self, sampler: str, steps: int) -> Callable[[], Tensor]:
        """A whole batch of volumes, (B, C, D, H, W): the sampler with its ``steps`` network evaluations.

        Noise is drawn on the host, as the stage `sample` does, and counts.
        """
        network, sample = self.network(), SAMPLERS[sampler]
        given = {"steps": steps, "eta": ETA}
        options = {name: given[name] for name in given.keys() & SAMPLERS.options(sampler)}

        def denoise(x: Tensor, t: Tensor) -> Tensor:
            predicted = network(torch.cat([x, self.condition], dim=1), t)
            self.device.mark_step()
            return predicted

        def volumes() -> Tensor:
            noise = self._noise("volume")
            x = noise().to(self.device.torch)
            return sample(
                denoise=denoise, x=x, schedule=self.schedule, noise=lambda: noise().to(self.device.torch), **options
            )

        return volumes

    def _noise(self, use: str) -> VolumeNoise:
        seeds = [derive_seed(self.seed, "optimize", use, volume) for volume in range(self.batch)]
        return VolumeNoise(seeds, (len(self.model.image), *self.size), torch.device("cpu"))


def seeded_network(model: MedDDPMSpec, seed: int) -> UNet:
    """A network of random weights on the host, none of them zero.

    A fresh network's residual branches and last convolution are zero, so that it predicts nothing and no arithmetic
    could be told from another. Here every convolution and linear layer has PyTorch's initial distribution, uniform
    within 1 / sqrt(fan-in), and every normalisation a scale of 1 + 0.1 n and a shift of 0.1 n, n standard normal.
    Normalisation bounds each branch, so the prediction has a standard deviation of 0.1 to 1 at any depth.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "optimize", "weights"))
        network = UNet(model)
        for layer in network.modules():
            if isinstance(layer, nn.GroupNorm):
                nn.init.normal_(layer.weight, 1.0, 0.1)
                nn.init.normal_(layer.bias, 0.0, 0.1)
            elif isinstance(layer, (nn.Conv1d, nn.Conv3d, nn.Linear)):
                layer.reset_parameters()
    return network


def phantom(images: int, masks: int, size: tuple[int, int, int], batch: int, seed: int) -> tuple[Tensor, Tensor]:
    """Smooth random volumes with masks, on the host.

    Returns:
        Images, (B, images, D, H, W) within -1..1, and masks, (B, masks, D, H, W) of -1 and +1, FP32.
    """
    generator = torch.Generator().manual_seed(derive_seed(seed, "optimize", "phantom"))
    coarse = torch.randn(batch, images + masks, *(max(side // 8, 2) for side in size), generator=generator)
    smooth = F.interpolate(coarse, size=tuple(size), mode="trilinear", align_corners=False)
    return smooth[:, :images].tanh(), (smooth[:, images:] > 0).float() * 2 - 1
