#!/bin/bash
set -euo pipefail
cd /workspace
{ zcat logs/access.log.2.gz; cat logs/access.log.1 logs/access.log; } | python3 -c '
import json, re, sys
from collections import Counter
from datetime import datetime, timezone
hits = []
for line in sys.stdin:
    ip, stamp, method, path, status = re.match(r"(\S+) \S+ \S+ \[([^\]]+)\] \"(\S+) (\S+) [^\"]*\" (\d+)", line).groups()
    when = datetime.strptime(stamp, "%d/%b/%Y:%H:%M:%S %z").astimezone(timezone.utc)
    hits.append((when, ip, method, path.split("?")[0], status))
failed = Counter(h[1] for h in hits if h[2:] == ("POST", "/login", "401"))
attacker, count = failed.most_common(1)[0]
inside = min(h[0] for h in hits if h[1:] == (attacker, "POST", "/login", "302"))
stolen = sorted({h[3] for h in hits if h[0] > inside and h[1] == attacker and h[2] == "GET" and h[4] == "200" and h[3].startswith("/export/")})
json.dump({"attacker": attacker, "failed_logins": count, "first_success": inside.strftime("%Y-%m-%dT%H:%M:%SZ"), "stolen": stolen}, open("report.json", "w"))
'
