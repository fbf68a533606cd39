# shellcheck shell=bash disable=SC2154,SC2086
# device_fake.sh - programs with a fake device (tests/fake/device_fake.c): the same bytes as on the CPU. If a call of
# the device fails, auto gives one warning and the same bytes, and cuda exit status 1 and one line.
# check-more: whole

have tokenize decompose pack || return 0
if [ ! -x "$O/fake/bin/pack" ] || [ ! -x "$O/fake/bin/decompose" ]; then
    skip "no $O/fake/bin (make check builds it)"
    return 0
fi
corpus c.jsonl 60000 12
tokenize -t bytes --domain-field domain c.jsonl >c.tks
decompose --min 64 --max 256 c.tks >d.tks
shuffle --documents --format megatron -o set c.tks
corpus e.jsonl 20000 7
tokenize -t bytes --domain-field domain e.jsonl >e.tks
cat c.tks e.tks >two.tks
"$PYTHON" -c 'for i in range(900): print("{\"text\": \"%s\", \"spans\": [[0, %d]]}" % ("abc" * (1 + i % 99), i % 3))' >m.jsonl
tokenize -t bytes --spans-field spans m.jsonl >m.tks
"$PYTHON" -c 'for i in range(30000): print("{\"text\": \"%s\"}" % ("abc %d " % i * (1 + i * i % 97)))' >long.jsonl
tokenize -t bytes long.jsonl >long.tks
"$PYTHON" - <<'END'
import random, struct
r = random.Random(5)
ids = [r.randrange(1, 500) if r.randrange(90) else 0 for _ in range(60000)] + [0]
open("ids.npy", "wb").write(struct.pack("<%dH" % len(ids), *ids))
END
"$PYTHON" "$top/tests/cli/device_fake.py" "$O/fake/bin" "$BIN"

# A slow reader: batches wait to be written in a device's windows, which must not be filled again before.
"$PYTHON" -c 'import random, sys; r = random.Random(6)
for _ in range(2000):
    n = r.randrange(1, 3000)
    sys.stdout.buffer.write(r.randbytes(2 * n).replace(b"\0", b"\1") + b"\0\0")' >wide.npy
wide="--length 4096 --eos-id 0 --token-bytes 2 -M 160M -T 6 wide.npy wide.npy wide.npy"
want=$(pack --device cpu $wide 2>err | sha)
same "windows that wait for a slow reader" "$want" "$("$O/fake/bin/pack" --device cuda $wide 2>err | { sleep 1 && sha; })"
