#!/bin/bash
cd "$(dirname "$0")" || exit 2
if [ -d "/proc/$(cat run/app.pid 2>/dev/null)" ]; then
  echo "already running" >&2
  exit 1
fi
nohup python3 app.py > run/app.log 2>&1 &
echo $! > run/app.pid
for _ in 1 2 3 4 5 6 7 8 9 10; do
  curl -s http://127.0.0.1:8080/health > /dev/null && exit 0
  sleep 1
done
exit 1
