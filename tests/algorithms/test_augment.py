"""Each augmentation against a slow reference implementation with the same random numbers."""

import colorsys
import itertools

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from expgen.algorithms.augment import AUGMENTATIONS, augment, hsv_to_rgb, rgb_to_hsv, scaled


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(batch: int, side: int, seed: int = 1) -> Tensor:
    return torch.randint(256, (batch, 3, side, side), generator=generator(seed)) / 255


def apply(name: str, x: Tensor, seed: int = 0) -> Tensor:
    return AUGMENTATIONS[name](x, generator(seed))


def test_augmentations_are_in_the_bandits_order():
    order = "crop random-conv grayscale flip rotate cutout cutout-color color-jitter"
    assert " ".join(AUGMENTATIONS) == order


@pytest.mark.parametrize("name", list(AUGMENTATIONS))
def test_augmentation_is_deterministic_given_its_generator(name: str):
    x = images(6, 16)
    before, noise = x.clone(), torch.get_rng_state()
    one, same, other = (apply(name, x, seed) for seed in (3, 3, 4))
    assert one.shape == x.shape and one.dtype == torch.float32
    assert torch.equal(one, same) and torch.equal(x, before) and torch.equal(torch.get_rng_state(), noise)
    assert torch.equal(one, other) == (name == "grayscale")  # the only one without random numbers
    assert not torch.equal(one, x)
    if name != "random-conv":
        assert one.min() >= 0 and one.max() <= 1 + 1e-6


def test_crop_replicates_the_border_and_crops_at_every_position():
    """Images of 64 pixels are padded by 12, so images of 16 pixels by 3."""
    x = images(400, 16)
    y = apply("crop", x)
    padded = F.pad(x, (3, 3, 3, 3), mode="replicate")
    cuts = {(i, j): padded[:, :, i : i + 16, j : j + 16] for i in range(7) for j in range(7)}
    found = [[at for at, cut in cuts.items() if torch.equal(cut[b], y[b])] for b in range(400)]
    assert all(len(places) == 1 for places in found)
    assert {places[0] for places in found} == set(cuts)


def test_random_conv_draws_one_kernel_per_image():
    x = images(5, 8)
    weight = (2 / 54) ** 0.5 * torch.randn(5, 3, 3, 3, 3, generator=generator())  # [B, row, column, out, in]
    expected = [F.conv2d(x[b : b + 1], weight[b].permute(2, 3, 0, 1), padding=1)[0] for b in range(5)]
    torch.testing.assert_close(apply("random-conv", x), torch.stack(expected))
    assert apply("random-conv", x).min() < 0  # not clipped


def test_grayscale_is_luma_in_every_channel():
    x = torch.tensor([1.0, 0.5, 0.25]).view(1, 3, 1, 1).repeat(1, 1, 2, 2)
    torch.testing.assert_close(apply("grayscale", x), torch.full((1, 3, 2, 2), 0.2989 + 0.2935 + 0.0285))


def test_flip_flips_half_of_the_images_vertically():
    x = images(400, 4)
    y = apply("flip", x)
    flipped = torch.tensor([torch.equal(y[b], x[b].flip(1)) for b in range(400)])
    kept = torch.tensor([torch.equal(y[b], x[b]) for b in range(400)])
    assert (flipped ^ kept).all() and 160 < flipped.sum() < 240


def test_rotate_uses_all_multiples_of_90_degrees():
    x = images(400, 4)
    y = apply("rotate", x)
    turns = [[k for k in range(4) if torch.equal(y[b], torch.rot90(x[b], k, (1, 2)))] for b in range(400)]
    assert all(len(k) == 1 for k in turns)
    counts = torch.bincount(torch.tensor([k[0] for k in turns]), minlength=4)
    assert (counts > 70).all() and (counts < 130).all()


def boxes(changed: Tensor) -> list[tuple[int, int]]:
    """Return height h and width w of the box [12+h, 12+2h) × [24+w, 24+2w) in which each image was changed."""
    found = []
    for image in changed:
        rows, columns = image.any(0).any(1).nonzero().flatten(), image.any(0).any(0).nonzero().flatten()
        h, w = int(rows[0]) - 12, int(columns[0]) - 24
        box = torch.zeros(64, 64, dtype=torch.bool)
        box[12 + h : 12 + 2 * h, 24 + w : 24 + 2 * w] = True
        assert torch.equal(image.any(0), box)
        found.append((h, w))
    return found


def test_cutout_paints_a_black_box_of_7_to_21_pixels():
    x = 0.1 + 0.9 * images(150, 64)  # no black pixels
    y = apply("cutout", x)
    assert not y[y != x].any()
    heights, widths = zip(*boxes(y != x))
    assert set(heights) == set(range(7, 22))
    assert set(widths) == set(range(7, 22))


def test_cutout_color_paints_the_box_in_one_color_in_range():
    x = torch.full((100, 3, 64, 64), 1 / 512)  # not a multiple of 1/255, so no box has this colour
    y = apply("cutout-color", x)
    boxes(y != x)
    for image in y:
        inside = image[:, (image != 1 / 512).all(0)]
        assert (inside == inside[:, :1]).all() and (inside >= 0).all() and (inside <= 254 / 255).all()
    assert len(y.amax((2, 3)).unique(dim=0)) > 90


def test_augmentation_sizes_scale_with_the_image():
    assert [scaled(pixels, 64) for pixels in (7, 12, 21, 24)] == [7, 12, 21, 24]
    assert [scaled(pixels, 11) for pixels in (7, 12, 21, 24)] == [1, 2, 4, 4]
    assert (apply("cutout", torch.ones(50, 3, 11, 11)) == 0).flatten(1).any(1).all()


def test_hsv_conversion_matches_colorsys_and_inverts():
    steps = torch.linspace(0, 1, 5).tolist()
    colors = torch.tensor(list(itertools.product(steps, repeat=3))).T.reshape(1, 3, 5, 25)
    hsv = rgb_to_hsv(colors)
    for (r, g, b), found in zip(colors.flatten(2)[0].T.tolist(), hsv.flatten(2)[0].T.tolist()):
        assert found == pytest.approx(colorsys.rgb_to_hsv(r, g, b), abs=1e-6)
    torch.testing.assert_close(hsv_to_rgb(hsv), colors, atol=1e-6, rtol=0)


@pytest.mark.parametrize("seed", range(4))
def test_color_jitter_matches_a_per_pixel_implementation(seed: int):
    """Brightness, contrast, saturation, hue and the contrast order are drawn in this order."""
    x, g = images(3, 4), generator(seed)
    brightness, contrast, saturation = (0.6 + 0.8 * torch.rand(3, 1, 1, 1, generator=g) for _ in range(3))
    hue = (2 * torch.rand(3, 1, 1, 1, generator=g) - 1) * 0.5 * 255 / 360
    contrast_first = bool(torch.rand((), generator=g) < 0.5)
    y = apply("color-jitter", x, seed)
    for b in range(3):

        def contrasted(image: Tensor, factor: float = contrast[b].item()) -> Tensor:
            mean = torch.stack([channel.mean() for channel in image]).view(3, 1, 1)
            return (mean + factor * (image - mean)).clamp(0, 1)

        expected = contrasted(x[b]) if contrast_first else x[b].clone()
        for i, j in itertools.product(range(4), range(4)):
            h, s, v = colorsys.rgb_to_hsv(*expected[:, i, j].tolist())
            s, v = min(1, s * saturation[b].item()), min(1, v * brightness[b].item())
            expected[:, i, j] = torch.tensor(colorsys.hsv_to_rgb((h + hue[b].item()) % 1, s, v))
        torch.testing.assert_close(y[b], expected if contrast_first else contrasted(expected), atol=1e-5, rtol=0)


def test_color_jitter_seeds_cover_both_contrast_orders():
    orders = set()
    for seed in range(4):
        g = generator(seed)
        for _ in range(4):
            torch.rand(3, 1, 1, 1, generator=g)
        orders.add(bool(torch.rand((), generator=g) < 0.5))
    assert orders == {True, False}


def test_augment_keeps_scale_and_layout_of_observations():
    obs = torch.randint(256, (2, 3, 8, 8, 3), generator=generator(), dtype=torch.uint8)
    seen = []

    def nothing(x: Tensor, g: torch.Generator) -> Tensor:
        seen.append(x)
        return x

    same = augment(obs, nothing, generator())
    assert same.dtype == torch.float32 and same.is_contiguous()
    torch.testing.assert_close(same, obs.float())
    assert seen[0].shape == (6, 3, 8, 8) and seen[0].max() <= 1
    upside_down = augment(obs, lambda x, g: x.flip(2), generator())
    torch.testing.assert_close(upside_down, obs.flip(2).float())
