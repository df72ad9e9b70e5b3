"""A fruit wholesaler as a star schema for DuckDB: deliveries by day, grower and sort. Called as `orchard.py <file> <seed>`; writes SQL."""
import random
import sys

path, seed = sys.argv[1], int(sys.argv[2])
pick = random.Random(f"orchard {seed}")
out = ["""
CREATE TYPE quality AS ENUM ('premium', 'standard', 'juice');
CREATE TABLE growers (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, valley VARCHAR NOT NULL, organic BOOLEAN NOT NULL, since DATE NOT NULL);
CREATE TABLE sorts (id INTEGER PRIMARY KEY, fruit VARCHAR NOT NULL, name VARCHAR NOT NULL, UNIQUE (fruit, name));
CREATE TABLE deliveries (id INTEGER PRIMARY KEY, grower_id INTEGER NOT NULL REFERENCES growers(id), sort_id INTEGER NOT NULL REFERENCES sorts(id), day DATE NOT NULL, kilos DECIMAL(9,1) NOT NULL, grade quality NOT NULL, price DECIMAL(6,2));
CREATE TABLE complaints (id INTEGER PRIMARY KEY, delivery_id INTEGER NOT NULL, said TEXT, settled DATE);
"""]
valleys = ["Anna", "Bela", "Cira", "Dorn"]
names = [a + b for a in ("Al", "Bor", "Fen", "Hol", "Mar", "Nes", "Tor", "Wil") for b in ("berg", "dal", "hof")]
for i, name in enumerate(pick.sample(names, 18), 1):
    organic = "true" if pick.random() < 0.4 else "false"
    out.append(f"INSERT INTO growers VALUES ({i}, '{name}', '{pick.choice(valleys)}', {organic}, DATE '{pick.randrange(1980, 2022)}-{pick.randrange(1, 13):02d}-01');")
sorts = [("apple", "Gala"), ("apple", "Boskoop"), ("apple", "Elstar"), ("pear", "Williams"), ("pear", "Conference"), ("plum", "Zwetsche"), ("cherry", "Kordia")]
for i, (fruit, name) in enumerate(sorts, 1):
    out.append(f"INSERT INTO sorts VALUES ({i}, '{fruit}', '{name}');")
rows = []
for i in range(1, 1201):
    grade = pick.choice(["premium", "premium", "standard", "standard", "standard", "juice"])
    price = "NULL" if pick.random() < 0.06 else f"{pick.randrange(40, 260) / 100:.2f}"
    rows.append(f"({i}, {pick.randrange(1, 17)}, {pick.randrange(1, 8)}, DATE '2024-{pick.randrange(1, 13):02d}-{pick.randrange(1, 29):02d}', {pick.randrange(50, 9000) / 10}, '{grade}', {price})")
out.append("INSERT INTO deliveries VALUES " + ",\n".join(rows) + ";")
rows = []
for i in range(1, 91):
    settled = "NULL" if pick.random() < 0.4 else f"DATE '2025-01-{pick.randrange(1, 29):02d}'"
    rows.append(f"({i}, {pick.randrange(1, 1201)}, '{pick.choice(['bruised', 'late', 'too few', 'mixed sorts'])}', {settled})")
out.append("INSERT INTO complaints VALUES " + ",\n".join(rows) + ";")
with open(path, "w", encoding="utf-8") as file:
    file.write("\n".join(out))
