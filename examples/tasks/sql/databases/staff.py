"""A company as a tree: units within units, people under people, salaries over time. Called as `staff.py <file> <seed>`."""
import random
import sqlite3
import sys

path, seed = sys.argv[1], int(sys.argv[2])
pick = random.Random(f"staff {seed}")
db = sqlite3.connect(path)
db.executescript("""
CREATE TABLE unit (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, parent_id INTEGER REFERENCES unit(id), budget INTEGER NOT NULL);
CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit_id INTEGER NOT NULL REFERENCES unit(id), manager_id INTEGER REFERENCES person(id), hired TEXT NOT NULL, left_on TEXT);
CREATE TABLE salary (person_id INTEGER NOT NULL REFERENCES person(id), since TEXT NOT NULL, monthly INTEGER NOT NULL, PRIMARY KEY (person_id, since));
CREATE TABLE skill (person_id INTEGER NOT NULL REFERENCES person(id), skill TEXT NOT NULL, level INTEGER NOT NULL, PRIMARY KEY (person_id, skill));
CREATE VIEW current_salary AS SELECT person_id, monthly, max(since) AS since FROM salary GROUP BY person_id;
""")
db.execute("INSERT INTO unit VALUES (1, 'Company', NULL, 900000)")
number = 1
level = [1]
words = ["North", "South", "East", "West", "Core", "Field", "Lab", "Desk"]
for depth in range(3):
    below = []
    for parent in level:
        for _ in range(pick.randrange(1, 4)):
            number += 1
            db.execute("INSERT INTO unit VALUES (?,?,?,?)", (number, f"{pick.choice(words)} {number}", parent, pick.randrange(10, 300) * 1000))
            below.append(number)
    level = below
units = number
names = "Aki Bo Cem Dee Eli Fay Gus Hal Ivy Jo Kit Lou Max Ned Ola Pat Ray Sol Tia Uma".split()
for i in range(1, 181):
    manager = None if i == 1 else pick.randrange(max(1, i // 6), max(2, i // 3 + 1))
    unit = 1 if i == 1 else pick.randrange(1, units)  # the last unit stays empty
    year = pick.randrange(2012, 2025)
    hired = f"{year}-{pick.randrange(1, 13):02d}-01"
    left = f"{pick.randrange(year + 1, 2027)}-06-30" if i > 10 and pick.random() < 0.2 else None
    db.execute("INSERT INTO person VALUES (?,?,?,?,?,?)", (i, f"{pick.choice(names)} {i}", unit, manager, hired, left))
    pay = pick.randrange(25, 70) * 100
    for step in range(pick.randrange(1, 5)):
        db.execute("INSERT INTO salary VALUES (?,?,?)", (i, f"{year + step}-{hired[5:]}", pay))
        pay += pick.randrange(-4, 8) * 50
    for skill in pick.sample(["sql", "python", "welding", "law", "sales", "design"], pick.randrange(0, 4)):
        db.execute("INSERT INTO skill VALUES (?,?,?)", (i, skill, pick.randrange(1, 6)))
db.commit()
