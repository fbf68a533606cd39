/* card_read.c - the part of a data card that differs by format: a few lines of Python
 * that read its first bucket with the package that trainers use. tests/judges runs
 * them. */
#include <string.h>

#include "formats/shards/card.h"

/* %N: the bucket's folder, %L its length, %I ids of a sequence, %W the ids' width in
 * bytes, %T numpy's name for it, %G how a member is read and %H its mask, %F the
 * first shard's name, %P that name up to its first dot. With masks, `mask` follows. */
static const struct reader {
    const char *format, *what, *package, *python, *mask;
    bool masks;     /* only for sets with masks, of which it is the reader */
    bool documents; /* the same of sets of whole documents */
} readers[] = {
    {"wds", "WebDataset tar files, for OpenLM", "webdataset",
     "import glob, json\n"
     "import webdataset\n"
     "\n"
     "shards = sorted(glob.glob(\"%N/shard-*.tar\"))\n"
     "for sample in webdataset.WebDataset(shards, shardshuffle=False):\n"
     "    ids = json.loads(%G)  # %I ids\n"
     "    break\n",
     "mask = json.loads(%H)  # 1: trained on\n"},
    {"olmo", "raw arrays of ids without a header, for OLMo-core", "numpy",
     "import numpy\n"
     "\n"
     "ids = numpy.memmap(\"%N/%F\", dtype=numpy.%T, mode=\"r\").reshape(-1, %I)\n"
     "ids = ids[0]  # %I ids; documents of the same file: its .csv.gz, a row each\n",
     "mask = numpy.memmap(\"%N/%P.label_mask\", dtype=numpy.bool_, mode=\"r\")[:%I]\n"},
    {"olmo", "raw arrays of ids without a header, for OLMo-core", "numpy",
     "import numpy\n"
     "\n"
     "ids = numpy.memmap(\"%N/%F\", dtype=numpy.%T, mode=\"r\")\n"
     "# Its documents: a row `begin,end,…` each in the .csv.gz beside it.\n",
     "mask = numpy.memmap(\"%N/%P.label_mask\", dtype=numpy.bool_, mode=\"r\")\n",
     .documents = true},
    {"ds", "datatrove's token files, for datatrove and nanotron", "datatrove",
     "from datatrove.utils.dataset import DatatroveFileDataset\n"
     "\n"
     "# It gives seq_len + 1 ids at a time: the inputs, and the labels one behind.\n"
     "data = DatatroveFileDataset(\"%N/%F\", seq_len=%I - 1, token_size=%W)\n"
     "ids = data[0][\"input_ids\"]  # %I ids\n"},
    {"ds", "datatrove's token files, for datatrove and nanotron", "datatrove",
     "from datatrove.utils.dataset import DatatroveFileDataset\n"
     "\n"
     "# It cuts the documents, one after the other, into runs of seq_len + 1 ids.\n"
     "data = DatatroveFileDataset(\"%N/%F\", seq_len=2048, token_size=%W)\n"
     "ids = data[0][\"input_ids\"]\n",
     .documents = true},
    {"megatron", "Megatron's indexed data sets", "megatron-core",
     "from megatron.core.datasets.indexed_dataset import IndexedDataset\n"
     "\n"
     "data = IndexedDataset(\"%N/%P\")\n"
     "ids = data[0]  # %I ids\n"},
    {"megatron", "Megatron's indexed data sets", "megatron-core",
     "from megatron.core.datasets.indexed_dataset import IndexedDataset\n"
     "\n"
     "data = IndexedDataset(\"%N/%P\")\n"
     "ids = data[0]  # of the first document\n",
     .documents = true},
    {"mds", "MosaicML's MDS shards, for llm-foundry and Composer", "mosaicml-streaming",
     "from streaming import StreamingDataset\n"
     "\n"
     "data = StreamingDataset(local=\"%N\", batch_size=1)\n"
     "ids = data[0][\"tokens\"]  # %I ids\n",
     "mask = data[0][\"loss_mask\"]  # 1: trained on\n"},
    {"mds", "MosaicML's MDS shards, for llm-foundry and Composer", "mosaicml-streaming",
     "from streaming import StreamingDataset\n"
     "\n"
     "data = StreamingDataset(local=\"%N\", batch_size=1)\n"
     "ids = data[0][\"tokens\"]  # of the first document\n",
     "mask = data[0][\"loss_mask\"]  # 1: trained on\n", .documents = true},
    {"litdata", "LitData chunks, for LitGPT and Lightning", "litdata",
     "from litdata import StreamingDataset, TokensLoader\n"
     "\n"
     "data = StreamingDataset(\"%N\", item_loader=TokensLoader(block_size=%I))\n"
     "ids = data[0]  # %I ids\n"},
    {"litdata", "LitData chunks, for LitGPT and Lightning", "litdata",
     "from litdata import StreamingDataset\n"
     "\n"
     "data = StreamingDataset(\"%N\")\n"
     "ids = data[0][\"input_ids\"]  # %I ids\n",
     "mask = data[0][\"loss_mask\"]  # 1: trained on\n", .masks = true},
    {"litdata", "LitData chunks, for LitGPT and Lightning", "litdata",
     "from litdata import StreamingDataset, TokensLoader\n"
     "\n"
     "# It cuts a shard's documents, one after the other, into blocks.\n"
     "data = StreamingDataset(\"%N\", item_loader=TokensLoader(block_size=2048))\n"
     "ids = data[0]\n",
     .documents = true},
    {"litdata", "LitData chunks, for LitGPT and Lightning", "litdata",
     "from litdata import StreamingDataset\n"
     "\n"
     "data = StreamingDataset(\"%N\")\n"
     "ids = data[0][\"input_ids\"]  # of the first document\n",
     "mask = data[0][\"loss_mask\"]  # 1: trained on\n", .masks = true,
     .documents = true},
    {"parquet", "Parquet, for Hugging Face datasets and TRL", "datasets",
     "from datasets import load_dataset\n"
     "\n"
     "data = load_dataset(\"parquet\", data_files=\"%N/*.parquet\", split=\"train\")\n"
     "ids = data[0][\"input_ids\"]  # %I ids\n",
     "mask = data[0][\"assistant_masks\"]  # 1: trained on\n"},
    {"parquet", "Parquet, for Hugging Face datasets and TRL", "datasets",
     "from datasets import load_dataset\n"
     "\n"
     "data = load_dataset(\"parquet\", data_files=\"%N/*.parquet\", split=\"train\")\n"
     "ids = data[0][\"input_ids\"]  # of the first document\n",
     "mask = data[0][\"assistant_masks\"]  # 1: trained on\n", .documents = true},
    {"megatron-sft", "packed Parquet for fine-tuning, for Megatron-Bridge", "pyarrow",
     "import pyarrow.parquet\n"
     "\n"
     "row = pyarrow.parquet.read_table(\"%N/%F\").slice(0, 1).to_pylist()[0]\n"
     "ids = row[\"input_ids\"]  # %I ids\n",
     "mask = [0] + row[\"loss_mask\"][:-1]  # 1: trained on; no first token is\n"},
};

static const struct reader *reader_of(const struct slu_card *c)
{
    const struct reader *found = NULL;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (!strcmp(readers[i].format, c->cfg->format->name) &&
            (c->cfg->header->masks || !readers[i].masks) &&
            (c->cfg->documents || !readers[i].documents))
            found = &readers[i];
    return found;
}

const char *slu_card_reader(const struct slu_card *c)
{
    const struct reader *r = reader_of(c);
    return r ? r->what : c->cfg->format->name;
}

const char *slu_card_package(const struct slu_card *c)
{
    const struct reader *r = reader_of(c);
    return r ? r->package : NULL;
}

static int put(const struct slu_card *c, const char *file, char what,
               struct slu_buf *out, struct slu_err *err)
{
    static const char *const get[] = {"sample[\"txt\"]", "sample[\"json\"]",
                                      "gzip.decompress(sample[\"json.gz\"])"},
                             *const get_mask[] = {
                                 "sample[\"loss_mask.txt\"]",
                                 "sample[\"loss_mask.json\"]",
                                 "gzip.decompress(sample[\"loss_mask.json.gz\"])"};
    const struct slu_shard_bucket *b = c->bucket[0].b;
    const char *dot = strchr(file, '.');
    switch (what) {
    case 'N':
        return slu_buf_printf(out, err, "%s", b->name);
    case 'L':
        return slu_buf_printf(out, err, "%llu", (unsigned long long)b->length);
    case 'I':
        return slu_buf_printf(out, err, "%llu", (unsigned long long)b->n_id);
    case 'W':
        return slu_buf_printf(out, err, "%u", b->tok_bytes);
    case 'T':
        return slu_buf_printf(out, err, b->tok_bytes == 2 ? "uint16" : "uint32");
    case 'F':
        return slu_buf_printf(out, err, "%s", file);
    case 'P':
        return slu_buf_append(out, file, dot ? (size_t)(dot - file) : strlen(file),
                              err);
    case 'H':
        return slu_buf_printf(out, err, "%s", get_mask[c->cfg->member]);
    default:
        return slu_buf_printf(out, err, "%s", get[c->cfg->member]);
    }
}

static int put_lines(const struct slu_card *c, const char *file, const char *lines,
                     struct slu_buf *out, struct slu_err *err)
{
    int rc = SLU_OK;
    for (const char *p = lines; *p && !rc;) {
        size_t n = strcspn(p, "%");
        rc = slu_buf_append(out, p, n, err);
        p += n;
        if (rc || !*p)
            continue;
        rc = put(c, file, p[1], out, err);
        p += 2;
    }
    return rc;
}

int slu_card_python(const struct slu_card *c, struct slu_buf *out, struct slu_err *err)
{
    const struct reader *r = reader_of(c);
    char file[256] = "";
    int rc = SLU_OK;

    if (!r || !c->n_bucket)
        return SLU_OK;
    c->cfg->format->file_name(c->state, 0, 0, file, sizeof file);
    if (c->cfg->member == SLU_MEMBER_JSON_GZ)
        rc = slu_buf_printf(out, err, "import gzip\n");
    if (!rc)
        rc = put_lines(c, file, r->python, out, err);
    if (!rc && c->cfg->header->masks && r->mask)
        rc = put_lines(c, file, r->mask, out, err);
    return rc;
}
