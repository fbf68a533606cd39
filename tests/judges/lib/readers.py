"""What the package that people train with says of a bucket of a set: (ids, which of them are trained on) of one or several
sequences at a time, in the order of the set."""
import glob
import itertools
import json
import shutil

import numpy as np
import sets

EOS, VOCAB = 256, 259  # of the tests' tokenizer of bytes, and two more


def parquet(bucket, _length):
    import datasets
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling
    datasets.disable_progress_bars()
    rows = datasets.load_dataset("parquet", data_files=sorted(glob.glob(bucket + "/*.parquet")), split="train",
                                 cache_dir="cache")
    collate = DataCollatorForLanguageModeling(pad_token_id=0, padding_free=True)
    for at in range(0, len(rows), 16):
        batch = collate(rows.select(range(at, min(at + 16, len(rows)))).to_list())
        ids, labels = batch["input_ids"][0].numpy(), batch["labels"][0].numpy()
        assert ((labels == -100) | (labels == ids)).all()
        yield ids, labels != -100
    shutil.rmtree("cache")


def olmo(bucket, length):
    from olmo_core.data.numpy_dataset import NumpyFSLDataset
    paths = sorted(glob.glob(bucket + "/*.npy"))
    data = NumpyFSLDataset(*paths, sequence_length=length, pad_token_id=0, eos_token_id=EOS, vocab_size=VOCAB, dtype=np.uint16,
                           label_mask_paths=sorted(glob.glob(bucket + "/*.label_mask")) or None)
    for i in range(len(data)):
        item = data[i]
        ids = item["input_ids"].numpy()
        yield ids, item["label_mask"].numpy() if "label_mask" in item else np.ones(len(ids), bool)


def mds(bucket, _length):
    data = sets.streaming().StreamingDataset(local=bucket, batch_size=1)
    for i in range(len(data)):
        row = data[i]
        yield row["tokens"], row["loss_mask"]


def litdata(bucket, _length):
    import litdata
    data = litdata.StreamingDataset(bucket)
    for i in range(len(data)):
        row = data[i]
        yield row["input_ids"], row["loss_mask"]


def wds(bucket, _length):
    import webdataset
    for sample in webdataset.WebDataset(sorted(glob.glob(bucket + "/*.tar")), shardshuffle=False):
        yield np.array(json.loads(sample["txt"])), np.array(json.loads(sample["loss_mask.txt"]))


def megatron_sft(bucket, _length):
    import pyarrow as pa
    import pyarrow.parquet as pq
    for path in sorted(glob.glob(bucket + "/*.idx.parquet")):
        table = pq.read_table(path)
        assert [table.schema.field(c).type.value_type for c in ("input_ids", "loss_mask", "seq_start_id")] == [
            pa.int32(), pa.int8(), pa.int32()]
        for row in zip(*(table[c] for c in ("input_ids", "loss_mask", "seq_start_id"))):
            ids, mask, start = (v.values.to_numpy() for v in row)
            trained = np.zeros(len(ids), bool)
            for a, b in itertools.pairwise([*start.tolist(), len(ids)]):
                trained[a + 1:b] = mask[a:b - 1]  # of the labels ids[a + 1:b]
            yield ids, trained


READERS = {"parquet": parquet, "olmo": olmo, "mds": mds, "litdata": litdata, "wds": wds, "megatron-sft": megatron_sft}
NO_FIRST = {"parquet", "megatron-sft"}
