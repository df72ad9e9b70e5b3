import sys
from bisect import bisect_right

visits = []
for line in sys.stdin:
    name, start, end = line.split()
    visits.append((name, int(start), int(end)))

starts = sorted(start for _, start, _ in visits)
ends = sorted(end for _, _, end in visits)

# A sweep over the moments at which somebody came: those who left by then are gone.
best, when, left = 0, None, 0
for i, second in enumerate(starts):
    if i + 1 < len(starts) and starts[i + 1] == second:
        continue
    while left < len(ends) and ends[left] <= second:
        left += 1
    if i + 1 - left > best:
        best, when = i + 1 - left, second
out = [f"largest crowd {best} at {when}"]

stays = {}
for name, start, end in visits:
    stays.setdefault(name, []).append((start, end))
for name in sorted(stays):
    seconds, reach = 0, None
    for start, end in sorted(stays[name]):
        if reach is None or start > reach:
            seconds, reach = seconds + end - start, end
        elif end > reach:
            seconds, reach = seconds + end - reach, end
    out.append(f"{name} {seconds}")

# All pairs but those of which one had left before the other came.
apart = sum(bisect_right(ends, start) for start in starts)
out.append(f"pairs that met {len(visits) * (len(visits) - 1) // 2 - apart}")
print("\n".join(out))
