"""TorchServe's handlers for images with real modules, and images as torchvision prepares them."""

import io

import numpy
import pytest
import torch
from bundles import unpacked
from PIL import Image

from topsail import testing
from topsail.container.signature import Signature, Tensor
from topsail.runtime.failure import PermanentFailure
from topsail.runtime.folder import Folder
from topsail.runtime.load import load


class Means(torch.nn.Module):
    """Three classes: the means of the channels."""

    def forward(self, x):
        return x.mean(dim=(2, 3))


class Pixels(torch.nn.Module):
    def forward(self, x):
        return {"out": x}


def scripted(module):
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(module), file)
    return file.getvalue()


def model(tmp_path, module, handler, output, **files):
    signature = Signature((Tensor("data", "bytes"),), (output,))
    files = {"model.pt": scripted(module)} | files
    return load(
        Folder(unpacked(tmp_path, "torch", "model.pt", files, signature=signature, options={"handler": handler}))
    )


def photograph(mode, size, kind):
    """Noise, which shows a shift by one pixel."""
    channels = len(mode) if mode != "L" else 1
    noise = numpy.random.default_rng(1).integers(0, 256, (size[1], size[0], channels), "uint8")
    file = io.BytesIO()
    Image.fromarray(noise.squeeze(), mode).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize("size", [(300, 200), (225, 511), (256, 256), (40, 61)])
def test_images_are_prepared_as_torchvision_does(tmp_path, size):
    transforms = pytest.importorskip("torchvision.transforms")
    file = photograph("RGB", size, "PNG")
    prepare = transforms.Compose(
        [
            transforms.Resize(256),
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ]
    )
    want = prepare(Image.open(io.BytesIO(file))).numpy()
    handled = model(tmp_path, Means(), "image_classifier", Tensor("output", "json"))
    assert numpy.allclose(handled._array(file), want, atol=1e-6)


def test_images_are_classified(tmp_path):
    names = b'{"0": ["n1", "red"], "1": "green", "2": "blue"}'
    handled = model(tmp_path, Means(), "image_classifier", Tensor("output", "json"), **{"index_to_name.json": names})
    blue = io.BytesIO()
    Image.new("RGB", (32, 50), (0, 0, 255)).save(blue, "PNG")
    queries = [blue.getvalue(), photograph("L", (90, 60), "JPEG"), b"not an image", photograph("RGBA", (50, 50), "PNG")]
    queries += [photograph("RGB", (1, 100), "PNG"), photograph("RGB", (30_000, 1), "PNG")]
    one, grey, bad, clear, long, narrow = testing.run(handled, [{"data": x} for x in queries])
    assert list(one.output) == ["blue", "green", "red"]
    assert one.output["blue"] == pytest.approx(one.confidence) and sum(one.output.values()) == pytest.approx(1)
    assert len(grey.output) == len(clear.output) == 3
    assert "the input is not a file of an image" in bad.error
    assert len(long.output) == 3 and "30000 by 1 pixels is too narrow" in narrow.error


def test_pixels_are_classified(tmp_path):
    handled = model(tmp_path, Pixels(), "image_segmenter", Tensor("output", "float32", (-1, -1, 2)))
    red = io.BytesIO()
    Image.new("RGB", (64, 64), (255, 0, 0)).save(red, "PNG")
    [answer] = testing.run(handled, [{"data": red.getvalue()}])
    found = numpy.array(answer.output)
    assert found.shape == (224, 224, 2)
    assert (found[:, :, 0] == 0).all() and (found[:, :, 1] > 0.9).all()


def test_unknown_handlers_are_refused(tmp_path):
    with pytest.raises(PermanentFailure, match="handler = 'object_detector' is unknown"):
        model(tmp_path, Means(), "object_detector", Tensor("output", "json"))


class Two(torch.nn.Module):
    def forward(self, x, y):
        return x - y, x + y


def test_inputs_and_outputs_by_position(tmp_path):
    """As Triton names those of a module."""
    signature = Signature(
        (Tensor("IN__1", "float32", (2,)), Tensor("IN__0", "float32", (2,))),
        (Tensor("OUT__0", "float32", (2,)), Tensor("OUT__1", "float32", (2,))),
    )
    named = load(Folder(unpacked(tmp_path, "torch", "model.pt", {"model.pt": scripted(Two())}, signature=signature)))
    [answer] = testing.run(named, [{"IN__1": [1, 1], "IN__0": [5, 7]}])
    assert answer.outputs == {"OUT__0": [4, 6], "OUT__1": [6, 8]}


def test_outputs_by_position_of_inputs_by_name(tmp_path):
    signature = Signature(
        (Tensor("x", "float32", (1,)), Tensor("y", "float32", (1,))),
        (Tensor("difference", "float32", (1,)), Tensor("sum", "float32", (1,))),
    )
    named = load(Folder(unpacked(tmp_path, "torch", "model.pt", {"model.pt": scripted(Two())}, signature=signature)))
    [answer] = testing.run(named, [{"y": [1], "x": [5]}])
    assert answer.outputs == {"difference": [4], "sum": [6]}
