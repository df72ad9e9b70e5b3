import type { Theme } from './themes.ts'

/**
 * The script that makes a database of a theme, called as `build.py <file> <seed>`. A seventh of the things have no deeds, and every kind
 * and state occurs, whatever the seed.
 */
export function databaseScript({ place, thing, deed, kinds, states }: Theme, world: number): string {
  return `import random
import sqlite3
import sys

path, seed = sys.argv[1], int(sys.argv[2])
pick = random.Random(f"records ${world} {seed}")
db = sqlite3.connect(path)
db.executescript("""
CREATE TABLE ${place.table} (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL, opened INTEGER NOT NULL);
CREATE TABLE ${thing.table} (id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, ${place.table}_id INTEGER NOT NULL REFERENCES ${place.table}(id), price_cents INTEGER NOT NULL);
CREATE TABLE ${deed.table} (id INTEGER PRIMARY KEY, ${thing.table}_id INTEGER NOT NULL REFERENCES ${thing.table}(id), day TEXT NOT NULL, state TEXT NOT NULL, amount_cents INTEGER NOT NULL);
""")
syllables = ["al", "bor", "cen", "dra", "el", "fin", "gor", "hal", "im", "jor", "kel", "lun"]
def name(i):
    return "".join(pick.sample(syllables, 2)).capitalize() + f" {i}"
for i in range(1, 13):
    db.execute("INSERT INTO ${place.table} VALUES (?,?,?,?)", (i, name(i), pick.choice(["Aldmoor", "Brackwater", "Corrin", "Dunlea"]), pick.randrange(1950, 2020)))
kinds = ${JSON.stringify(kinds)}
states = ${JSON.stringify(states)}
for i in range(1, 91):
    db.execute("INSERT INTO ${thing.table} VALUES (?,?,?,?,?)", (i, name(i), kinds[i % 5], pick.randrange(1, 13), pick.randrange(200, 20000)))
busy = [i for i in range(1, 91) if i % 7 != 3]
for i in range(1, 1201):
    day = f"2025-{pick.randrange(1, 13):02d}-{pick.randrange(1, 29):02d}"
    db.execute("INSERT INTO ${deed.table} VALUES (?,?,?,?,?)", (i, pick.choice(busy), day, states[i % 3], pick.randrange(100, 9000)))
db.commit()
`
}
