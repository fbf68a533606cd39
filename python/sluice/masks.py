"""Masks by which tokens attend to their own document alone, from a batch of sluice.Batches.

All are causal. Padding is a document of its own: it attends to itself and nothing to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._base import need


def document_ids(batch: dict[str, Any]) -> Any:
    """The number of each token's document in the batch, in the shape of input_ids; int64."""
    first = batch["position_ids"] == 0
    return (first.reshape(-1).cumsum(0) - 1).reshape(first.shape)


def _documents(batch: dict[str, Any]) -> Any:
    """document_ids as a tensor of two dimensions: rows and tokens."""
    documents = document_ids(batch)
    if isinstance(documents, np.ndarray):
        documents = need("torch", "masks").from_numpy(documents)
    return documents if documents.dim() == 2 else documents[None]


def sdpa_mask(batch: dict[str, Any]) -> Any:
    """attn_mask of torch.nn.functional.scaled_dot_product_attention: bool, (rows, 1, tokens, tokens)."""
    torch = need("torch", "masks")
    documents = _documents(batch)
    n = documents.shape[1]
    causal = torch.ones(n, n, dtype=torch.bool, device=documents.device).tril()
    return ((documents[:, :, None] == documents[:, None, :]) & causal)[:, None]


def flex_block_mask(batch: dict[str, Any], **options: Any) -> Any:
    """block_mask of torch.nn.attention.flex_attention.flex_attention; options are create_block_mask's."""
    flex = need("torch.nn.attention.flex_attention", "flex_block_mask")
    documents = _documents(batch)

    def same_document(row: Any, _head: Any, q: Any, k: Any) -> Any:
        return (documents[row, q] == documents[row, k]) & (q >= k)

    rows, n = documents.shape
    options.setdefault("device", str(documents.device))
    return flex.create_block_mask(same_document, rows, None, n, n, **options)


def flash_varlen(batch: dict[str, Any]) -> dict[str, Any]:
    """Arguments of flash_attn_varlen_func, for q, k, v of all the batch's tokens one behind another."""
    cu, longest = batch["cu_seqlens"], batch["max_seqlen"]
    return {"cu_seqlens_q": cu, "cu_seqlens_k": cu, "max_seqlen_q": longest, "max_seqlen_k": longest, "causal": True}
