# shellcheck shell=bash disable=SC2154
# dedup_stages.sh - dedup --stage: the same bytes as one run for any number of parts, threads and memory; kill -9 in
# each stage and a rerun; truncated and damaged files; other parameters, tokenizers and streams; missing parts.
# check-more: whole

have tokenize dedup inspect || return 0
"$PYTHON" "$top/tests/cli/dedup_stages.py" equal ${MORE:+index} index_exact refused refused_exact ${MORE:+damaged}
[ -n "$MORE" ] || return 0
if "$PYTHON" -c 'import xxhash' 2>/dev/null; then
    "$PYTHON" "$top/tests/cli/dedup_stages.py" forged
else
    skip "forged files: needs the package xxhash"
fi
[ -n "$SHIM" ] || skip "kill -9: not under sanitizers"
[ -z "$SHIM" ] || "$PYTHON" "$top/tests/cli/dedup_stages.py" killed
