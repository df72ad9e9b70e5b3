"""Makes the damaged backup. Same bytes on every run."""

import base64
import bz2
import gzip
import hashlib
import io
import lzma
import os
import random
import sys
import tarfile
import zipfile

out = sys.argv[1]
os.makedirs(out)
rng = random.Random(515)
manifest = []


def content(name, size, wanted=True):
    words = "ledger invoice tea cup harbour lamp winter order north seven".split()
    text = f"{name}\n" + "".join(f"{rng.randrange(10**6):06d} {rng.choice(words)} {rng.getrandbits(64):016x}\n" for _ in range(size))
    if wanted:
        manifest.append((name, hashlib.sha256(text.encode()).hexdigest()))
    return text.encode()


def tar(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(data), 1760000000, 0o644
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def put(name, data):
    with open(os.path.join(out, name), "wb") as file:
        file.write(data)


monday = gzip.compress(tar([("monday/a.txt", content("monday/a.txt", 300)), ("monday/b b.txt", content("monday/b b.txt", 200)), ("monday/lost.txt", content("monday/lost.txt", 900, False))]), mtime=0)
put("monday.tar.gz", monday[: len(monday) * 55 // 100])
inner = lzma.compress(tar([("tuesday/deep/core.txt", content("tuesday/deep/core.txt", 120))]))
put("tuesday.dat", bz2.compress(tar([("tuesday/list.txt", content("tuesday/list.txt", 40)), ("inner.bin", inner)])))
buffer = io.BytesIO()
with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, size in (("wednesday/one.txt", 150), ("wednesday/two.txt", 90)):
        archive.writestr(zipfile.ZipInfo(name, (2026, 1, 7, 12, 0, 0)), content(name, size), zipfile.ZIP_DEFLATED)
packed = buffer.getvalue()
put("wednesday.zip", packed[: packed.rindex(b"PK\x01\x02", 0, packed.rindex(b"PK\x01\x02"))])
mail = base64.encodebytes(gzip.compress(content("thursday/letter.txt", 80), mtime=0)).decode()
put("thursday.b64", f"From: Robin\nSubject: thursday/letter.txt.gz\n\n{mail}\n-- \nRobin, from the harbour\n".encode())
friday = lzma.compress(tar([("friday/plan.txt", content("friday/plan.txt", 260)), ("friday/plan.old", content("friday/plan.old", 30))]))
third = len(friday) // 3
for name, piece in (("friday.001", friday[third : 2 * third]), ("friday.002", friday[2 * third :]), ("friday.003", friday[:third])):
    put(name, piece)
put("MANIFEST.sha256", "".join(f"{digest}  {name}\n" for name, digest in sorted(manifest)).encode())
