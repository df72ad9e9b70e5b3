"""A clinic: people, visits with nullable ends, prescriptions, lab results. Called as `clinic.py <file> <seed>`."""
import random
import sqlite3
import sys
from datetime import datetime, timedelta

path, seed = sys.argv[1], int(sys.argv[2])
pick = random.Random(f"clinic {seed}")
db = sqlite3.connect(path)
db.executescript("""
CREATE TABLE patient (patient_no INTEGER PRIMARY KEY, full_name TEXT NOT NULL, born TEXT NOT NULL, sex TEXT CHECK (sex IN ('f','m','x')), insurer TEXT);
CREATE TABLE doctor (doctor_no INTEGER PRIMARY KEY, full_name TEXT NOT NULL, specialty TEXT NOT NULL, supervisor_no INTEGER REFERENCES doctor(doctor_no));
CREATE TABLE visit (visit_no INTEGER PRIMARY KEY, patient_no INTEGER NOT NULL REFERENCES patient(patient_no), doctor_no INTEGER NOT NULL REFERENCES doctor(doctor_no), started TEXT NOT NULL, ended TEXT, diagnosis TEXT);
CREATE TABLE prescription (visit_no INTEGER NOT NULL REFERENCES visit(visit_no), drug TEXT NOT NULL, daily_mg REAL NOT NULL, days INTEGER NOT NULL, PRIMARY KEY (visit_no, drug));
CREATE TABLE lab_result (lab_no INTEGER PRIMARY KEY, visit_no INTEGER NOT NULL REFERENCES visit(visit_no), test TEXT NOT NULL, value REAL, unit TEXT NOT NULL);
""")
first = "Anna Ben Clara David Elif Frida Georg Hana Iris Jan Kim Lea Mara Noah Omar Paula".split()
last = "Adler Berger Conrad Dietz Ernst Fuchs Graf Haas Imhof Jung Kern Lang".split()
for i in range(1, 151):
    born = datetime(1935, 1, 1) + timedelta(days=pick.randrange(31000))
    insurer = pick.choice(["Alpha", "Beta", "Gamma", None])
    db.execute("INSERT INTO patient VALUES (?,?,?,?,?)",
               (1000 + i, f"{pick.choice(first)} {pick.choice(last)}", born.strftime("%Y-%m-%d"), pick.choice("ffmmx"), insurer))
specialties = ["cardiology", "dermatology", "neurology", "surgery"]
for i in range(1, 16):
    boss = None if i <= 3 else pick.randrange(1, 4)
    db.execute("INSERT INTO doctor VALUES (?,?,?,?)", (i, f"Dr. {pick.choice(last)} {i}", specialties[i % 4], boss))
visits = []
for i in range(1, 501):
    start = datetime(2025, 1, 1, 8) + timedelta(minutes=15 * pick.randrange(365 * 40))
    end = None if pick.random() < 0.08 else start + timedelta(minutes=pick.randrange(5, 180))
    diagnosis = pick.choice(["flu", "fracture", "migraine", "eczema", "arrhythmia", None])
    visits.append((i, 1000 + pick.randrange(1, 136), pick.randrange(1, 15), start, end, diagnosis))
for number, patient, doctor, start, end, diagnosis in visits:
    text = "%Y-%m-%d %H:%M"
    db.execute("INSERT INTO visit VALUES (?,?,?,?,?,?)",
               (number, patient, doctor, start.strftime(text), end and end.strftime(text), diagnosis))
    for drug in pick.sample(["aspirin", "ibuprofen", "codeine", "cortisone", "metoprolol"], pick.randrange(0, 3)):
        db.execute("INSERT INTO prescription VALUES (?,?,?,?)", (number, drug, pick.choice([12.5, 50, 100, 400]), pick.randrange(1, 30)))
    for test, unit, low, high in [("glucose", "mg/dl", 60, 180), ("crp", "mg/l", 0, 90), ("hb", "g/dl", 8, 18)]:
        if pick.random() < 0.35:
            value = None if pick.random() < 0.1 else round(pick.uniform(low, high), 1)
            db.execute("INSERT INTO lab_result (visit_no, test, value, unit) VALUES (?,?,?,?)", (number, test, value, unit))
db.commit()
