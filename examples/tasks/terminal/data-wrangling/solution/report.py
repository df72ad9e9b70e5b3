import csv
import json
import os
import sys

folder, out = sys.argv[1:]
countries = {}
with open(os.path.join(folder, "customers.jsonl"), encoding="utf-8") as file:
    for line in file:
        if line.strip():
            entry = json.loads(line)
            countries[entry["id"]] = entry.get("country") or "??"


def cents(text):
    text = text.strip().replace(".", "")
    sign = -1 if text.startswith("-") else 1
    whole, _, rest = text.lstrip("+-").partition(",")
    return sign * (int(whole or 0) * 100 + int(rest.ljust(2, "0")))


def month(text):
    text = text.strip()
    if "." in text:
        day, number, year = text.split(".")
        return f"{year}-{number}"
    return text[:7]


orders = {}
with open(os.path.join(folder, "orders.csv"), encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file, delimiter=";"):
        orders[row["order_id"]] = row
groups = {}
for row in orders.values():
    if row["status"].strip().lower() != "cancelled":
        key = (countries.get(row["customer"], "??"), month(row["date"]))
        groups.setdefault(key, []).append((row["customer"], cents(row["amount"])))
with open(out, "w", encoding="utf-8", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["country", "month", "orders", "customers", "revenue"])
    for (country, when), group in sorted(groups.items()):
        total = sum(amount for _, amount in group)
        sign = "-" if total < 0 else ""
        revenue = f"{sign}{abs(total) // 100}.{abs(total) % 100:02d}"
        writer.writerow([country, when, len(group), len({who for who, _ in group}), revenue])
