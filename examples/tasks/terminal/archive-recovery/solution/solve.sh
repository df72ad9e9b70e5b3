#!/bin/bash
set -euo pipefail
backup=/workspace/backup
mkdir -p /workspace/recovered /tmp/work && cd /tmp/work
zcat "$backup/monday.tar.gz" 2>/dev/null > monday.tar || true
tar -xf monday.tar 2>/dev/null || true
rm -f monday/lost.txt
tar -xjf "$backup/tuesday.dat" && tar -xJf inner.bin && rm inner.bin
cat > carve.py <<'PY'
import os, struct, sys, zlib
data, at = open(sys.argv[1], 'rb').read(), 0
while (at := data.find(b'PK\x03\x04', at)) != -1:
    name_size, extra_size = struct.unpack('<HH', data[at + 26:at + 30])
    name = data[at + 30:at + 30 + name_size].decode()
    start = at + 30 + name_size + extra_size
    os.makedirs(os.path.dirname(name), exist_ok=True)
    open(name, 'wb').write(zlib.decompressobj(-15).decompress(data[start:]))
    at = start
PY
python3 carve.py "$backup/wednesday.zip"
mkdir -p thursday
sed -n '/^$/,/^-- $/p' "$backup/thursday.b64" | grep -E '^[A-Za-z0-9+/=]+$' | base64 -d | gzip -dc > thursday/letter.txt
cat "$backup"/friday.003 "$backup"/friday.001 "$backup"/friday.002 | tar -xJf -
cp -r monday tuesday wednesday thursday friday /workspace/recovered/
cd /workspace/recovered && sha256sum -c --quiet "$backup/MANIFEST.sha256"
