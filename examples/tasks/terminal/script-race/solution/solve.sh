#!/bin/bash
set -euo pipefail
cp "$(dirname "$0")/sell.sh" /workspace/till/sell.sh
chmod 755 /workspace/till/sell.sh
cd /workspace/till && ./try.sh
