"""Runs the agent's program, as another user, on data it has never seen, and compares bytes."""

import csv
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from datetime import date, timedelta

# As of timeout(1): no reward. On a busy machine nobody knows whose fault it is, and else the verifier finds out.
LATE = 124
COUNTRIES = ["DE", "FR", "NL", "Åland", "Bonaire, Saba", 'The "Shire"', "de"]
COLUMNS = ["order_id", "customer", "date", "amount", "status", "note"]
NOTES = ["", "gift", "call before; please", "first line\nsecond line", 'said "soon"', "—"]


def euros(cents, rng):
    sign, cents = ("-" if cents < 0 else ""), abs(cents)
    whole = f"{cents // 100:,}".replace(",", ".") if rng.random() < 0.7 else str(cents // 100)
    if cents % 100 == 0 and rng.random() < 0.4:
        return sign + whole
    if cents % 10 == 0 and rng.random() < 0.3:
        return f"{sign}{whole},{cents % 100 // 10}"
    return f"{sign}{whole},{cents % 100:02d}"


def data(seed, count, scale):
    """Input files and the report, from the same facts."""
    rng = random.Random(seed)
    customers, lines = {}, []
    for number in range(max(3, count // 6)):
        for _ in range(1 if rng.random() < 0.8 else 2):
            entry = {"id": f"c{number}", "name": f"Customer {number}"}
            country = rng.choice(COUNTRIES + [None, ""])
            if country is not None or rng.random() < 0.5:
                entry["country"] = country
            customers[entry["id"]] = country or "??"
            lines.append(json.dumps(entry, ensure_ascii=rng.random() < 0.5))
            if rng.random() < 0.1:
                lines.append("")
    orders, rows = {}, []
    for number in range(count):
        key = f"o{rng.randrange(count) if rng.random() < 0.1 else number}"
        customer = f"c{rng.randrange(count // 6 + 3)}"
        day = date(2025, 11, 1) + timedelta(days=rng.randrange(150))
        cents = rng.randrange(1, scale) * (-1 if rng.random() < 0.1 else 1)
        status = rng.choice(["paid", "paid", "open", "shipped", "Cancelled ", "cancelled", "uncancelled"])
        shown = day.isoformat() if rng.random() < 0.5 else day.strftime("%d.%m.%Y")
        rows.append({"order_id": key, "customer": customer, "date": shown, "amount": euros(cents, rng), "status": status, "note": rng.choice(NOTES)})
        orders[key] = (customer, day, cents, status.strip().lower() != "cancelled")
    columns = COLUMNS[:]
    rng.shuffle(columns)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, delimiter=";", lineterminator="\r\n" if seed % 2 else "\n")
    writer.writeheader()
    writer.writerows(rows)
    groups = {}
    for customer, day, cents, counts in orders.values():
        if counts:
            groups.setdefault((customers.get(customer, "??"), day.strftime("%Y-%m")), []).append((customer, cents))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["country", "month", "orders", "customers", "revenue"])
    for (country, month), group in sorted(groups.items()):
        total = sum(cents for _, cents in group)
        shown = f"{'-' if total < 0 else ''}{abs(total) // 100}.{abs(total) % 100:02d}"
        writer.writerow([country, month, len(group), len({customer for customer, _ in group}), shown])
    return text.getvalue(), "\n".join(lines) + "\n", out.getvalue()


def put(folder, orders, customers):
    os.makedirs(folder, exist_ok=True)
    for name, content in (("orders.csv", orders), ("customers.jsonl", customers)):
        with open(f"{folder}/{name}", "w", newline="", encoding="utf-8") as file:
            file.write(content)


if len(sys.argv) == 3 and sys.argv[1] == "--sample":
    orders, customers, report = data(4, 60, 900000)
    put(f"{sys.argv[2]}/in", orders, customers)
    with open(f"{sys.argv[2]}/expected.csv", "w", newline="", encoding="utf-8") as file:
        file.write(report)
    raise SystemExit


def limits():
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))


def run(orders, customers):
    """What the agent's program makes of an input; the input lies where nothing tells which case it is."""
    shutil.rmtree("/tmp/case", ignore_errors=True)
    put("/tmp/case/in", orders, customers)
    os.makedirs("/tmp/case/out")
    os.chown("/tmp/case/out", 1000, 1000)
    process = subprocess.Popen(
        ["python3", "/workspace/report.py", "/tmp/case/in", "/tmp/case/out/report.csv"], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/tmp/case/out", env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
        user=1000, group=1000, extra_groups=[], start_new_session=True, preexec_fn=limits,
    )
    try:
        code = process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise SystemExit(LATE)
    if code != 0:
        return None
    with open("/tmp/case/out/report.csv", "rb") as file:
        return file.read(8 << 20)


cases = {"small": (4, 60, 900000), "other_data": (11, 80, 900000), "many": (23, 6000, 900000), "large_sums": (36, 300, 10**18), "few": (57, 4, 5000)}
checks = {}
for name, parameters in cases.items():
    orders, customers, report = data(*parameters)
    try:
        given = run(orders, customers)
        checks[name] = given == report.encode()
        if not checks[name]:
            print(f"{name}: wanted\n{report[:300]}\ngot\n{str(given)[:300]}")
    except Exception as error:
        print(f"{name}: {error!r}")
        checks[name] = False
given_none = run("order_id;customer;date;amount;status;note\n", "") if checks["small"] else None
checks["no_orders"] = given_none == b"country,month,orders,customers,revenue\n"
reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)
