"""Reads row by row through the table trees, past the damaged indexes and the lost leaf, into a fresh schema."""

import sqlite3

old = sqlite3.connect("file:/workspace/shop.db?mode=ro&immutable=1", uri=True)
new = sqlite3.connect("/workspace/fixed.db")
with open("/workspace/schema.sql") as file:
    new.executescript(file.read())
for table, marks in (("customers", "?, ?, ?"), ("products", "?, ?, ?")):
    new.executemany(f"INSERT INTO {table} VALUES ({marks})", old.execute(f"SELECT * FROM {table} NOT INDEXED"))
customers = {row[0] for row in new.execute("SELECT id FROM customers")}
products = {row[0] for row in new.execute("SELECT sku FROM products")}
last = old.execute("SELECT id FROM orders NOT INDEXED ORDER BY id DESC LIMIT 1").fetchone()[0]
for number in range(1, last + 1):
    try:
        row = old.execute("SELECT * FROM orders NOT INDEXED WHERE id = ?", (number,)).fetchone()
    except sqlite3.DatabaseError:
        continue
    if row is not None and row[1] in customers and row[2] in products:
        new.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", row)
new.commit()
