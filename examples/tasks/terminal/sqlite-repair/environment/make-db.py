"""Makes the shop's database and damages it: an index page, the free-page list and one leaf of the orders."""

import random
import sqlite3
import struct
import sys

schema, path = sys.argv[1:]
rng = random.Random(88)
db = sqlite3.connect(path)
db.execute("PRAGMA page_size = 1024")
with open(schema) as file:
    db.executescript(file.read())
names = "Anna Bo Carl Dora Eve Finn Gro Hal Ida Jon".split()
db.executemany("INSERT INTO customers VALUES (?, ?, ?)", [(i, f"{rng.choice(names)} {i}", f"user{i}@shop.example") for i in range(1, 401)])
db.executemany("INSERT INTO products VALUES (?, ?, ?)", [(f"SKU-{i:04d}", f"Thing number {i}, {'é' * (i % 7)}", rng.randrange(1, 99999)) for i in range(120)])
rows = [(i, rng.randrange(1, 401), f"SKU-{rng.randrange(120):04d}", rng.randrange(1, 9), rng.choice([None, "gift", "ring first", "x" * rng.randrange(40)])) for i in range(1, 3001)]
for i in (77, 1500, 2222):
    rows[i - 1] = (i, 9000 + i, *rows[i - 1][2:])
rows[2800] = (2801, 5, "SKU-9999", 1, None)
db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", rows)
db.commit()
root = dict(db.execute("SELECT name, rootpage FROM sqlite_master"))
db.close()

with open(path, "rb") as file:
    data = bytearray(file.read())


def page(number):
    return (number - 1) * 1024


def children(number):
    at = page(number)
    cells = struct.unpack_from(">H", data, at + 3)[0]
    pointers = struct.unpack_from(f">{cells}H", data, at + 12)
    return [struct.unpack_from(">I", data, at + p)[0] for p in pointers]


def leaves(number):
    return [number] if data[page(number)] == 13 else [leaf for child in children(number) for leaf in leaves(child)]


order_leaves = leaves(root["orders"])
gone = order_leaves[len(order_leaves) // 2]
data[page(gone) : page(gone) + 1024] = bytes(rng.randrange(256) for _ in range(1024))
data[page(gone)] = 0
for name in ("orders_by_customer", "sqlite_autoindex_customers_1"):
    target = children(root[name])[1]
    data[page(target) + 40 : page(target) + 700] = bytes(660)
data[32:40] = struct.pack(">II", 7, 9000)
with open(path, "wb") as file:
    file.write(data)
