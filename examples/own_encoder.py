"""A custom encoder: MLP-Mixer (Tolstikhin et al. 2021), which mixes image patches over positions and channels:

expgen train --import examples/own_encoder.py --encoder mixer --run runs/mixer
"""

from torch import nn

import expgen


@expgen.register("encoder", "mixer")
class Mixer(nn.Module):
    """`[B, height, width, channel]` uint8 → `[B, features]`, with PyTorch's default initialisation."""

    def __init__(self, obs_shape, features, side=3, width=64):
        super().__init__()
        rows, columns, channels = obs_shape
        patches = (rows // side) * (columns // side)
        self.embed = nn.Conv2d(channels, width, side, stride=side)
        self.mix_patches = nn.Sequential(nn.Linear(patches, patches), nn.GELU(), nn.Linear(patches, patches))
        self.mix_channels = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.out = nn.Sequential(nn.Flatten(), nn.Linear(patches * width, features), nn.ReLU())

    def forward(self, obs):
        x = self.embed(obs.permute(0, 3, 1, 2).float() / 255).flatten(2)  # [B, width, patches]
        x = x + self.mix_patches(x)
        x = x.transpose(1, 2)  # [B, patches, width]
        return self.out(x + self.mix_channels(x))
