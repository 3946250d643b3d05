"""An encoder of your own, patches mixed over places and over channels (MLP-Mixer, Tolstikhin et al. 2021):

expgen train --import examples/own_encoder.py --encoder mixer --run runs/mixer
"""

from torch import nn

import expgen


@expgen.register("encoder", "mixer")
class Mixer(nn.Module):
    """`[B, height, width, channel]` uint8 → `[B, features]`, with the weights that torch gives its layers."""

    def __init__(self, obs_shape, features, side=3, width=64):
        super().__init__()
        height, breadth, channels = obs_shape
        places = (height // side) * (breadth // side)
        self.patches = nn.Conv2d(channels, width, side, stride=side)
        self.over_places = nn.Sequential(nn.Linear(places, places), nn.GELU(), nn.Linear(places, places))
        self.over_channels = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.out = nn.Sequential(nn.Flatten(), nn.Linear(places * width, features), nn.ReLU())

    def forward(self, obs):
        x = self.patches(obs.permute(0, 3, 1, 2).float() / 255).flatten(2)  # [B, width, places]
        x = x + self.over_places(x)
        x = x.transpose(1, 2)  # [B, places, width]
        return self.out(x + self.over_channels(x))
