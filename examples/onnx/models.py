"""Makes the models of this example with PyTorch: models/*.onnx, and logits.json with the answers of PyTorch itself.

  pip install torch==2.15.0 onnx==1.23.2 onnxscript==0.7.2 && python3 models.py

All read MNIST's digits, and have seen the first 6,000 training images once: far from what they could learn."""
import gzip
import json
import pathlib

import onnx
import torch
from torch import nn

FOLDER = pathlib.Path(__file__).resolve().parent
DATA = FOLDER.parent.parent / "data/mnist"
SEEN = 6000
RECORDED = 16


class Attention(nn.Module):
    """Self-attention of two heads, with the images on the leading axis throughout."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = (part.unflatten(2, (2, 8)).transpose(1, 2) for part in self.qkv(x).chunk(3, 2))
        return self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A transformer's block."""

    def __init__(self):
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(16), Attention())
        self.feed_forward = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.feed_forward(x)


class Transformer(nn.Module):
    """One block over the 28 rows of an image."""

    def __init__(self, block):
        super().__init__()
        self.embed = nn.Linear(28, 16)
        self.positions = nn.Parameter(torch.randn(28, 16) * 0.1)
        self.block = block
        self.head = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 10))

    def forward(self, images):
        return self.head(self.block(self.embed(images) + self.positions)).mean(1)


class Recurrent(nn.Module):
    """A GRU over the 28 rows of an image."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(28, 24, batch_first=True)
        self.head = nn.Linear(24, 10)

    def forward(self, images):
        return self.head(self.gru(images)[0][:, -1])


class BlankToken(nn.Module):
    """A learned token in place of rows without ink: a parameter outside of layers, in an operation that has no perturbed form."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(28, 8)
        self.blank = nn.Parameter(torch.randn(8) * 0.1)
        self.head = nn.Linear(8, 10)

    def forward(self, images):
        ink = images.amax(2, keepdim=True) > 0
        return self.head(torch.relu(torch.where(ink, self.embed(images), self.blank))).mean(1)


MODELS = {
    "perceptron": ((784,), lambda: nn.Sequential(nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10))),
    "convolutional": (
        (1, 28, 28),
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 5, stride=2, padding=2), nn.ReLU(), nn.BatchNorm2d(4),
            nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 10),
        ),
    ),
    "transformer": ((28, 28), lambda: Transformer(Block())),
    "recurrent": ((28, 28), Recurrent),
    "blank_token": ((28, 28), BlankToken),
    # PyTorch's own block has the sequence on the leading axis inside.
    "sequence_first": (
        (28, 28),
        lambda: Transformer(nn.TransformerEncoderLayer(16, 2, 32, 0.0, "gelu", batch_first=True, norm_first=True)),
    ),
    # Without running statistics, a norm takes those of the batch.
    "batch_statistics": (
        (784,),
        lambda: nn.Sequential(
            nn.Linear(784, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.ReLU(), nn.Linear(8, 10)
        ),
    ),
}


def digits(name):
    images = gzip.decompress((DATA / f"{name}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((DATA / f"{name}-labels-idx1-ubyte.gz").read_bytes())[8:]
    images = torch.frombuffer(bytearray(images), dtype=torch.uint8).float() / 255
    return images.reshape(-1, 784), torch.frombuffer(bytearray(labels), dtype=torch.uint8).long()


def export(model, example, path):
    """Without what PyTorch adds for debugging, such as paths of its own files."""
    rows = torch.export.Dim("rows")
    program = torch.onnx.export(
        model, (example,), input_names=["images"], output_names=["logits"], dynamic_shapes=({0: rows},), dynamo=True
    )
    proto = program.model_proto
    for part in [proto, proto.graph, *proto.graph.node, *proto.graph.value_info, *proto.graph.input, *proto.graph.output]:
        del part.metadata_props[:]
        part.ClearField("doc_string")
    onnx.checker.check_model(proto)
    onnx.save(proto, path)


def main():
    torch.set_num_threads(1)
    (images, labels), (tests, test_labels) = digits("train"), digits("t10k")
    recorded = {}
    for name, (shape, build) in MODELS.items():
        torch.manual_seed(0)
        model = build()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for start in range(0, SEEN, 50):
            batch = slice(start, start + 50)
            loss = nn.functional.cross_entropy(model(images[batch].reshape(-1, *shape)), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(tests.reshape(-1, *shape)).argmax(1) == test_labels).float().mean()
            logits = model(tests[:RECORDED].reshape(-1, *shape))
        recorded[name] = [[round(value, 6) for value in row] for row in logits.tolist()]
        path = FOLDER / f"models/{name}.onnx"
        export(model, tests[:RECORDED].reshape(-1, *shape), path)
        print(f"{name}: {path.stat().st_size} bytes, test accuracy {100 * accuracy:.2f} %")
    rows = [f'"{name}": {json.dumps(rows)}' for name, rows in recorded.items()]
    (FOLDER / "models/logits.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


main()
