#!/usr/bin/env python3
"""make_tokenizer.py - prints a tokenizer.json: bytes, one merge, and a token that ends a document."""
import json

shown = [b for b in range(256) if 33 <= b < 127 or 161 <= b < 256 and b != 173]
others = [b for b in range(256) if b not in shown]
vocab = {chr(b): b for b in shown}
vocab.update({chr(256 + i): b for i, b in enumerate(others)})
vocab.update({"th": 256, "<|endoftext|>": 257})
end = {"id": 257, "content": "<|endoftext|>", "special": True, "normalized": False}
end.update({"single_word": False, "lstrip": False, "rstrip": False})
byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
print(json.dumps({
    "version": "1.0", "added_tokens": [end], "normalizer": None, "pre_tokenizer": byte_level, "decoder": byte_level,
    "model": {"type": "BPE", "vocab": vocab, "merges": ["t h"]}}))
