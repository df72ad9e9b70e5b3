"""A harbour for PostgreSQL: ships, berths, calls, loads and tariffs. Called as `harbor.py <file> <seed>`; writes SQL."""
import random
import sys

path, seed = sys.argv[1], int(sys.argv[2])
pick = random.Random(f"harbor {seed}")
out = ["""
CREATE TYPE cargo AS ENUM ('container', 'grain', 'oil', 'cars');
CREATE TABLE ship (imo INTEGER PRIMARY KEY, name TEXT NOT NULL, flag CHAR(2) NOT NULL, length_m NUMERIC(5,1) NOT NULL, tags TEXT[] NOT NULL DEFAULT '{}');
CREATE TABLE berth (code TEXT PRIMARY KEY, quay TEXT NOT NULL, max_length_m NUMERIC(5,1) NOT NULL);
CREATE TABLE port_call (id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, imo INTEGER NOT NULL REFERENCES ship(imo), berth TEXT REFERENCES berth(code), arrived TIMESTAMP NOT NULL, departed TIMESTAMP, CHECK (departed > arrived));
CREATE TABLE load (call_id INTEGER NOT NULL REFERENCES port_call(id) ON DELETE CASCADE, kind cargo NOT NULL, tonnes NUMERIC(8,1) NOT NULL, facts JSONB NOT NULL DEFAULT '{}', PRIMARY KEY (call_id, kind));
CREATE TABLE tariff (kind cargo PRIMARY KEY, per_tonne NUMERIC(6,2) NOT NULL);
CREATE INDEX port_call_by_ship ON port_call (imo, arrived);
CREATE VIEW at_berth AS SELECT p.id, s.name, p.berth FROM port_call p JOIN ship s USING (imo) WHERE p.departed IS NULL AND p.berth IS NOT NULL;
"""]
first = ["Alva", "Brage", "Cilia", "Dunja", "Edda", "Freya", "Gerda", "Heimdal", "Idun", "Jarl"]
for i in range(1, 41):
    tags = pick.sample(["ice", "tanker", "feeder", "roro", "lng"], pick.randrange(0, 3))
    out.append(f"INSERT INTO ship VALUES ({9000000 + i * 7}, '{pick.choice(first)} {i}', '{pick.choice(['NO', 'PA', 'LR', 'DE', 'MT'])}', {pick.randrange(800, 3990) / 10}, '{{{','.join(tags)}}}');")
for quay in ("North", "South", "Oil"):
    for n in range(1, 5):
        out.append(f"INSERT INTO berth VALUES ('{quay[0]}{n}', '{quay}', {pick.randrange(150, 400)});")
for kind in ("container", "grain", "oil", "cars"):
    out.append(f"INSERT INTO tariff VALUES ('{kind}', {pick.randrange(120, 900) / 100});")
for i in range(1, 401):
    imo = 9000000 + pick.randrange(1, 37) * 7
    day, hour = pick.randrange(1, 29), pick.randrange(0, 24)
    month = pick.randrange(1, 7)
    berth = "NULL" if pick.random() < 0.08 else f"'{pick.choice('NSO')}{pick.randrange(1, 5)}'"
    arrived = f"TIMESTAMP '2025-{month:02d}-{day:02d} {hour:02d}:{pick.choice(['00', '15', '30', '45'])}'"
    departed = "NULL" if pick.random() < 0.1 else f"{arrived} + INTERVAL '{pick.randrange(3, 90)} hours'"
    out.append(f"INSERT INTO port_call (imo, berth, arrived, departed) VALUES ({imo}, {berth}, {arrived}, {departed});")
    for kind in pick.sample(["container", "grain", "oil", "cars"], pick.randrange(0, 3)):
        agent = pick.choice(["Lund", "Moe", "Ness", "Otto"])
        facts = f'{{"agent": "{agent}"}}' if pick.random() < 0.8 else "{}"
        out.append(f"INSERT INTO load VALUES ({i}, '{kind}', {pick.randrange(100, 90000) / 10}, '{facts}');")
with open(path, "w", encoding="utf-8") as file:
    file.write("\n".join(out))
