"""A web shop: customers, products in categories, orders with lines, returns. Called as `shop.py <file> <seed>`."""
import random
import sqlite3
import sys
from datetime import date, timedelta

path, seed = sys.argv[1], int(sys.argv[2])
pick = random.Random(f"shop {seed}")
db = sqlite3.connect(path)
db.executescript("""
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE, country TEXT NOT NULL, joined TEXT NOT NULL);
CREATE TABLE categories (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, category_id INTEGER NOT NULL REFERENCES categories(id), price_cents INTEGER NOT NULL, discontinued INTEGER NOT NULL DEFAULT 0);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers(id), placed TEXT NOT NULL, status TEXT NOT NULL);
CREATE TABLE order_lines (order_id INTEGER NOT NULL REFERENCES orders(id), line INTEGER NOT NULL, product_id INTEGER NOT NULL REFERENCES products(id), quantity INTEGER NOT NULL, unit_cents INTEGER NOT NULL, PRIMARY KEY (order_id, line));
CREATE TABLE returns (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES orders(id), returned TEXT NOT NULL, reason TEXT);
CREATE INDEX orders_by_customer ON orders(customer_id);
""")
first = "Ada Bela Cleo Dario Edda Femi Goran Hilde Ines Jonas Kaya Lior Mina Nils Olga Pia".split()
last = "Arendt Brandt Costa Duarte Ekström Fabre Gallo Hoxha Ito Jansen".split()
countries = ["DE", "DE", "FR", "IT", "PT", "SE"]
for i in range(1, 121):
    name = f"{pick.choice(first)} {pick.choice(last)}"
    joined = date(2024, 1, 1) + timedelta(days=pick.randrange(500))
    email = None if pick.random() < 0.2 else f"c{i}@example.org"
    db.execute("INSERT INTO customers VALUES (?,?,?,?,?)", (i, name, email, pick.choice(countries), joined.isoformat()))
names = ["Books", "Garden", "Kitchen", "Music", "Office", "Outdoor", "Toys"]
for i, name in enumerate(names, 1):
    db.execute("INSERT INTO categories VALUES (?,?)", (i, name))
for i in range(1, 71):
    category = pick.randrange(1, 7)  # Toys stay empty
    db.execute("INSERT INTO products VALUES (?,?,?,?,?)",
               (i, f"{names[category - 1]} item {i}", category, pick.randrange(199, 19999), int(pick.random() < (0.15 if i < 56 else 0.6))))
prices = dict(db.execute("SELECT id, price_cents FROM products"))
for i in range(1, 601):
    placed = date(2025, 1, 1) + timedelta(days=pick.randrange(365))
    status = pick.choices(["delivered", "shipped", "cancelled", "open"], [70, 10, 12, 8])[0]
    db.execute("INSERT INTO orders VALUES (?,?,?,?)", (i, pick.randrange(1, 101), placed.isoformat(), status))
    for line in range(1, pick.randrange(2, 6)):
        product = pick.randrange(1, 56)  # the rest was never ordered
        unit = prices[product] if pick.random() < 0.8 else prices[product] * 9 // 10
        db.execute("INSERT INTO order_lines VALUES (?,?,?,?,?)", (i, line, product, pick.randrange(1, 5), unit))
    if status == "delivered" and pick.random() < 0.12:
        returned = placed + timedelta(days=pick.randrange(2, 40))
        reason = pick.choice(["broken", "wrong item", "too late", None])
        db.execute("INSERT INTO returns (order_id, returned, reason) VALUES (?,?,?)", (i, returned.isoformat(), reason))
db.commit()
