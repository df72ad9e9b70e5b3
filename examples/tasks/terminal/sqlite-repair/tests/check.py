"""Holds fixed.db against what the image's own damaged file still gives, read leaf by leaf without SQLite's help."""

import json
import os
import re
import sqlite3
import struct

checks = {}
PATH = "/workspace/fixed.db"
with open("/workspace/shop.db", "rb") as file:
    data = file.read()


def varint(at):
    value = 0
    for i in range(9):
        byte = data[at + i]
        if i == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at + i + 1


def rows(number):
    """Rows of a table's tree, as far as its pages are sound. (SQLite file format, section 1.6; no overflow here.)"""
    at = (number - 1) * 1024
    kind, cells = data[at], struct.unpack_from(">H", data, at + 3)[0]
    if kind == 5:
        for pointer in struct.unpack_from(f">{cells}H", data, at + 12):
            yield from rows(struct.unpack_from(">I", data, at + pointer)[0])
        yield from rows(struct.unpack_from(">I", data, at + 8)[0])
    elif kind == 13:
        for pointer in struct.unpack_from(f">{cells}H", data, at + 8):
            _, here = varint(at + pointer)
            rowid, here = varint(here)
            size, body = varint(here)
            end, types = here + size, []
            while body < end:
                kind_of, body = varint(body)
                types.append(kind_of)
            values, here = [], end
            for t in types:
                width = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}.get(t, (t - 12) // 2 if t >= 12 else 8)
                raw = data[here : here + width]
                values.append(None if t == 0 else t - 8 if t in (8, 9) else int.from_bytes(raw, "big", signed=True) if t < 7 else raw.decode())
                here += width
            yield rowid, values


with sqlite3.connect("file:/workspace/shop.db?mode=ro&immutable=1", uri=True) as damaged:
    roots = dict(damaged.execute("SELECT name, rootpage FROM sqlite_master"))
    with open("/workspace/schema.sql") as file:
        fresh = sqlite3.connect(":memory:")
        fresh.executescript(file.read())
customers = {(rowid, *values[1:]) for rowid, values in rows(roots["customers"])}
products = {tuple(values) for _, values in rows(roots["products"])}
ids, skus = {row[0] for row in customers}, {row[0] for row in products}
orders = {(rowid, *values[1:]) for rowid, values in rows(roots["orders"]) if values[1] in ids and values[2] in skus}
assert len(customers) == 400 and len(products) == 120 and 2900 < len(orders) < 2996


def check(name, test):
    try:
        checks[name] = bool(test())
    except Exception as error:
        print(f"{name}: {error!r}")
        checks[name] = False


db = None
if os.path.isfile(PATH) and not os.path.islink(PATH):
    db = sqlite3.connect(f"file:{PATH}?mode=ro&immutable=1", uri=True)
    db.execute("PRAGMA trusted_schema = OFF")


def shape(connection):
    """What the schema means: columns, keys, uniqueness, indexes; not how it is written."""
    names = sorted(connection.execute("SELECT type, name, tbl_name FROM sqlite_master"))
    facts = [names]
    for table in ("customers", "products", "orders"):
        for pragma in ("table_info", "foreign_key_list"):
            facts.append([tuple(row) for row in connection.execute(f"PRAGMA {pragma}({table})")])
        facts.append(sorted((r[1], r[2], r[3], tuple(connection.execute(f'PRAGMA index_info("{r[1]}")'))) for r in connection.execute(f"PRAGMA index_list({table})")))
    text = " ".join(row[0] or "" for row in connection.execute("SELECT sql FROM sqlite_master"))
    return facts, bool(re.search(r"check\s*\(\s*\"?cents\"?\s*>=\s*0\s*\)", text, re.I))


check("integrity", lambda: list(db.execute("PRAGMA integrity_check")) == [("ok",)])
check("foreign_keys", lambda: list(db.execute("PRAGMA foreign_key_check")) == [] and len(list(db.execute("PRAGMA foreign_key_list(orders)"))) == 2)
check("schema", lambda: shape(db) == shape(fresh))
check("customers", lambda: sorted(db.execute("SELECT * FROM customers")) == sorted(customers))
check("products", lambda: sorted(db.execute("SELECT * FROM products")) == sorted(products))


def order_rows():
    given = list(db.execute("SELECT * FROM orders"))
    print("orders: missing", len(orders - set(given)), "extra", len(set(given) - orders))
    return len(given) == len(orders) and set(given) == orders


check("orders", order_rows)
reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)
