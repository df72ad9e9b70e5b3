# A program that takes all memory that there is, in the box of whoever tests it.
cat > /workspace/report.py <<'PY'
hold = []
while True:
    hold.append(b"x" * (256 << 20))
PY
timeout -s KILL 3 python3 /workspace/report.py; true
