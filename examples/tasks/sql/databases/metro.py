"""A city railway as a graph: stations, lines, their stops in order, timed connections, rides. Called as `metro.py <file> <seed>`."""
import random
import sqlite3
import sys

path, seed = sys.argv[1], int(sys.argv[2])
pick = random.Random(f"metro {seed}")
db = sqlite3.connect(path)
db.executescript("""
CREATE TABLE station (code TEXT PRIMARY KEY, name TEXT NOT NULL, zone INTEGER NOT NULL, lift INTEGER NOT NULL);
CREATE TABLE line (line TEXT PRIMARY KEY, colour TEXT NOT NULL, opened INTEGER NOT NULL);
CREATE TABLE stop (line TEXT NOT NULL REFERENCES line(line), position INTEGER NOT NULL, code TEXT NOT NULL REFERENCES station(code), PRIMARY KEY (line, position));
CREATE TABLE link (a TEXT NOT NULL REFERENCES station(code), b TEXT NOT NULL REFERENCES station(code), minutes INTEGER NOT NULL, PRIMARY KEY (a, b));
CREATE TABLE ride (id INTEGER PRIMARY KEY, card INTEGER NOT NULL, entered TEXT NOT NULL REFERENCES station(code), left_at TEXT REFERENCES station(code), day TEXT NOT NULL, fare REAL NOT NULL);
""")
codes = [a + b for a in "ABCDEF" for b in "KLMNPR"]
for code in codes:
    db.execute("INSERT INTO station VALUES (?,?,?,?)", (code, f"{code} {pick.choice(['Square', 'Park', 'Bridge', 'Market', 'Gate'])}", pick.randrange(1, 5), pick.randrange(2)))
links = set()
for name, colour in [("M1", "red"), ("M2", "blue"), ("M3", "green"), ("M4", "yellow"), ("M5", "black")]:
    db.execute("INSERT INTO line VALUES (?,?,?)", (name, colour, pick.randrange(1930, 2020)))
    way = pick.sample(codes[:32], pick.randrange(7, 12))
    for position, code in enumerate(way, 1):
        db.execute("INSERT INTO stop VALUES (?,?,?)", (name, position, code))
    links.update(tuple(sorted(pair)) for pair in zip(way, way[1:]))
for a, b in sorted(links):
    db.execute("INSERT INTO link VALUES (?,?,?)", (a, b, pick.randrange(1, 9)))
served = sorted({code for pair in links for code in pair})
for i in range(1, 1501):
    left = None if pick.random() < 0.05 else pick.choice(served)
    fare = 4.5 if left is None else round(1.1 + 0.7 * pick.randrange(5), 2)
    day = f"2025-{pick.randrange(1, 3):02d}-{pick.randrange(1, 29):02d}"
    db.execute("INSERT INTO ride VALUES (?,?,?,?,?,?)", (i, pick.randrange(1, 61), pick.choice(served), left, day, fare))
db.commit()
