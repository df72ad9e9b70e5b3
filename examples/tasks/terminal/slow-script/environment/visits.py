import sys

visits = []
for line in sys.stdin:
    name, start, end = line.split()
    visits.append((name, int(start), int(end)))

# How many were inside at once, and from when: the first second of the largest crowd.
best, when = 0, None
for second in sorted(start for _, start, _ in visits):
    inside = 0
    for _, start, end in visits:
        if start <= second < end:
            inside += 1
    if inside > best:
        best, when = inside, second
print("largest crowd", best, "at", when)

# For each visitor: seconds spent inside; stays that overlap count once.
names = []
for name, _, _ in visits:
    if name not in names:
        names.append(name)
for name in sorted(names):
    seconds = []
    for other, start, end in visits:
        if other == name:
            for second in range(start, end):
                if second not in seconds:
                    seconds.append(second)
    print(name, len(seconds))

# How many pairs of visits met: were inside at the same second.
pairs = 0
for i in range(len(visits)):
    for j in range(i + 1, len(visits)):
        if visits[i][1] < visits[j][2] and visits[j][1] < visits[i][2]:
            pairs += 1
print("pairs that met", pairs)
