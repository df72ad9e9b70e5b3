#!/bin/bash
set -euo pipefail
here=$(dirname "$0")
cp "$here/app.py" "$here/start.sh" /workspace/service/
chmod 755 /workspace/service/start.sh
printf '{"host": "127.0.0.1", "port": 8080, "data": "data"}\n' > /workspace/service/config.json
