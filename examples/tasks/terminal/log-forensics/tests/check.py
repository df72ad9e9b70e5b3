"""Holds /workspace/report.json against the logs, which are the image's own here: only the report came from the agent."""

import gzip
import json
import re
from collections import Counter
from datetime import datetime, timezone

LINE = re.compile(r'(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+) [^"]*" (\d{3}) ')
hits = []
for name in ("access.log.2.gz", "access.log.1", "access.log"):
    opener = gzip.open if name.endswith(".gz") else open
    with opener(f"/workspace/logs/{name}", "rt") as file:
        for line in file:
            ip, stamp, method, path, status = LINE.match(line).groups()
            when = datetime.strptime(stamp, "%d/%b/%Y:%H:%M:%S %z").astimezone(timezone.utc)
            hits.append((when, ip, method, path.split("?")[0], int(status)))

failed = Counter(ip for _, ip, method, path, status in hits if (method, path, status) == ("POST", "/login", 401))
attacker, count = failed.most_common(1)[0]
inside = min(w for w, ip, m, p, s in hits if (ip, m, p, s) == (attacker, "POST", "/login", 302))
stolen = sorted({p for w, ip, m, p, s in hits if ip == attacker and m == "GET" and s == 200 and w > inside and p.startswith("/export/")})
truth = {
    "attacker": attacker,
    "failed_logins": count,
    "first_success": inside.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "stolen": stolen,
}

try:
    with open("/workspace/report.json") as file:
        report = json.load(file)
except Exception as error:
    print(f"report.json: {error!r}")
    report = None

checks = {"is_object_with_exact_keys": isinstance(report, dict) and set(report) == set(truth)}
for key, value in truth.items():
    given = report.get(key) if isinstance(report, dict) else None
    checks[key] = type(given) is type(value) and given == value
    if not checks[key]:
        print(f"{key}: wrong value {str(given)[:200]}")

reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)
