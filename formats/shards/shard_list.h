/* shard_list.h - the formats that are built, a line each: FORMAT(name) stands for the
 * writer slu_shard_NAME (formats/shards/shard.h) and the layout slu_shard_layout_NAME
 * that reads it back (formats/shards/shardset.h). No include guard: who includes it
 * defines FORMAT.
 */

FORMAT(wds) /* WebDataset: OpenLM */

FORMAT(olmo) /* OLMo-core */

FORMAT(ds) /* datatrove, nanotron */

FORMAT(megatron)

FORMAT(mds) /* MosaicML streaming */

FORMAT(litdata) /* LitData */

FORMAT(parquet) /* TRL, Hugging Face datasets; where Arrow is */
