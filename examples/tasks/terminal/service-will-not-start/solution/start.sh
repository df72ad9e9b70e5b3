#!/bin/bash
cd "$(dirname "$0")" || exit 2
mkdir -p run
healthy() { curl -fs -m 1 http://127.0.0.1:8080/healthz > /dev/null; }
pid=$(cat run/app.pid 2>/dev/null)
if [ -n "$pid" ] && tr '\0' ' ' < "/proc/$pid/cmdline" 2>/dev/null | grep -q 'app\.py' && healthy; then
  echo "already running" >&2
  exit 1
fi
nohup python3 app.py > run/app.log 2>&1 < /dev/null &
echo $! > run/app.pid
for _ in $(seq 40); do
  healthy && exit 0
  sleep 0.1
done
exit 2
