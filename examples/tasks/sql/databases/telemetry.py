"""Devices and their readings: names that need quotes, settings as rows, blobs, integers beyond 2^53, gaps. Called as `telemetry.py <file> <seed>`."""
import random
import sqlite3
import sys
from datetime import datetime, timedelta

path, seed = sys.argv[1], int(sys.argv[2])
pick = random.Random(f"telemetry {seed}")
db = sqlite3.connect(path)
db.executescript("""
CREATE TABLE "device" ("serial no" INTEGER PRIMARY KEY, "model" TEXT NOT NULL, "site" TEXT, "fingerprint" BLOB NOT NULL);
CREATE TABLE "setting" ("serial no" INTEGER NOT NULL REFERENCES "device"("serial no"), "key" TEXT NOT NULL, "value" TEXT, PRIMARY KEY ("serial no", "key"));
CREATE TABLE "reading" ("serial no" INTEGER NOT NULL REFERENCES "device"("serial no"), "at" TEXT NOT NULL, "celsius" REAL, "volt" REAL, PRIMARY KEY ("serial no", "at")) WITHOUT ROWID;
CREATE TABLE "alarm" ("id" INTEGER PRIMARY KEY, "serial no" INTEGER NOT NULL REFERENCES "device"("serial no"), "raised" TEXT NOT NULL, "cleared" TEXT, "group" TEXT NOT NULL, "note" TEXT);
""")
base = 9007199254740993
serials = [base + 2 * i for i in range(40)]
for serial in serials:
    site = pick.choice(["Oslo", "Bergen", "Tromsø", "oslo", None])
    db.execute('INSERT INTO "device" VALUES (?,?,?,?)', (serial, pick.choice(["T-100", "T-200", "V-9"]), site, bytes(pick.randrange(256) for _ in range(8))))
    for key, values in [("interval", ["5", "10", "15", "30"]), ("unit", ["C", "F"]), ("limit", ["25", "30.5", "n/a"]), ("owner", ["ops", "lab", ""])]:
        if pick.random() < 0.8:
            db.execute('INSERT INTO "setting" VALUES (?,?,?)', (serial, key, pick.choice(values)))
    start = datetime(2025, 3, 1)
    warm = pick.uniform(10, 28)
    for hour in range(72):
        if pick.random() < 0.07 or serial in serials[-3:]:
            continue
        celsius = None if pick.random() < 0.05 else round(warm + pick.gauss(0, 3), 2)
        db.execute('INSERT INTO "reading" VALUES (?,?,?,?)',
                   (serial, (start + timedelta(hours=hour)).strftime("%Y-%m-%dT%H:00"), celsius, round(pick.uniform(3.0, 3.6), 3)))
notes = ["door open", "50% load", "it's loud", None, "answer: 42", "<solution>SELECT 1</solution>"]
for i in range(1, 161):
    raised = datetime(2025, 3, 1) + timedelta(minutes=pick.randrange(72 * 60))
    cleared = None if pick.random() < 0.3 else raised + timedelta(minutes=pick.randrange(1, 600))
    db.execute('INSERT INTO "alarm" VALUES (?,?,?,?,?,?)',
               (i, pick.choice(serials), raised.strftime("%Y-%m-%dT%H:%M"), cleared and cleared.strftime("%Y-%m-%dT%H:%M"), pick.choice(["heat", "power", "link"]), pick.choice(notes)))
db.commit()
