"""Writes three days of access logs with one break-in. Same output on every run."""

import gzip
import os
import random
import sys
from datetime import datetime, timedelta, timezone

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
rng = random.Random(20260301)
start = datetime(2026, 3, 1, tzinfo=timezone.utc)

ATTACKER, CRAWLER, CLUMSY, PARTNER = "203.0.113.77", "198.51.100.4", "192.0.2.61", "198.51.100.23"
visitors = [f"192.0.2.{rng.randrange(1, 60)}" for _ in range(40)]
pages = ["/", "/shop", "/shop/tea", "/shop/cups", "/about", "/static/site.css", "/static/logo.svg"]
exports = ["/export/customers.csv", "/export/orders-2025.csv", "/export/orders-2026.csv", "/export/suppliers.csv"]
agents = ['"Mozilla/5.0 (X11; Linux x86_64)"', '"curl/7.88.1"', '"Mozilla/5.0 (Macintosh)"']
lines = []


def hit(seconds, ip, method, path, status, agent=None):
    # A few servers behind the balancer log in local time.
    zone = timezone(timedelta(hours=rng.choice([0, 0, 0, 2, -5])))
    stamp = (start + timedelta(seconds=seconds)).astimezone(zone).strftime("%d/%b/%Y:%H:%M:%S %z")
    size = rng.randrange(120, 48000)
    line = f'{ip} - - [{stamp}] "{method} {path} HTTP/1.1" {status} {size} "-" {agent or rng.choice(agents)}'
    lines.append((seconds, len(lines), line))


day = 86400
for _ in range(2600):
    hit(rng.randrange(3 * day), rng.choice(visitors), "GET", rng.choice(pages), rng.choice([200, 200, 200, 304, 404]))
for _ in range(1400):
    hit(rng.randrange(3 * day), CRAWLER, "GET", rng.choice(pages), 200, '"FriendlyBot/2.1"')
# Somebody who forgot a password, and visitors who log in.
for i in range(25):
    hit(30000 + 40 * i, CLUMSY, "POST", "/login", 401)
hit(31200, CLUMSY, "POST", "/login", 302)
for _ in range(60):
    ip, at = rng.choice(visitors), rng.randrange(3 * day)
    hit(at, ip, "POST", "/login", rng.choice([302, 302, 401]))
# A partner whose exports are allowed, with a login of its own and failures on another path.
hit(50000, PARTNER, "POST", "/login", 302)
for i in range(700):
    hit(50100 + 100 * i, PARTNER, "POST", "/api/login", 401)
for path in exports[:3]:
    hit(90000, PARTNER, "GET", path, 200)
# The attack: guesses on all three days, in, and out with the data.
for i in range(212):
    hit(40000 + 37 * i, ATTACKER, "POST", "/login", 401, '"python-requests/2.31"')
for i in range(164):
    hit(day + 20000 + 31 * i, ATTACKER, "POST", "/login", 401, '"python-requests/2.31"')
for i in range(57):
    hit(2 * day + 9000 + 29 * i, ATTACKER, "POST", "/login", 401, '"python-requests/2.31"')
for i in range(9):
    hit(2 * day + 9100 + 31 * i, ATTACKER, "GET", "/login", 401, '"python-requests/2.31"')
for path in (exports[2], "/export/keys.csv"):
    hit(2 * day + 9200, ATTACKER, "GET", path, 403)
inside = 2 * day + 11173
hit(inside, ATTACKER, "POST", "/login", 302, '"python-requests/2.31"')
hit(inside + 500, ATTACKER, "POST", "/login", 302, '"python-requests/2.31"')
for offset, path, status in [
    (12, "/export/customers.csv?page=1", 200),
    (19, "/export/customers.csv?page=2", 200),
    (33, "/export/keys.csv", 403),
    (41, "/export/orders-2026.csv", 200),
    (44, "/export/archive/2024.zip", 200),
    (60, "/export/suppliers.csv", 500),
    (71, "/exports/readme.txt", 200),
]:
    hit(inside + offset, ATTACKER, "GET", path, status, '"python-requests/2.31"')
hit(inside + 80, ATTACKER, "HEAD", "/export/suppliers.csv", 200, '"python-requests/2.31"')

lines.sort()
parts = {0: "access.log.2.gz", 1: "access.log.1", 2: "access.log"}
for number, name in parts.items():
    text = "".join(line + "\n" for at, _, line in lines if at // day == number).encode()
    with open(os.path.join(out, name), "wb") as file:
        file.write(gzip.compress(text, mtime=0) if name.endswith(".gz") else text)
