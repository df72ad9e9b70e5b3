#!/bin/bash
set -euo pipefail
rm -f /workspace/fixed.db
python3 "$(dirname "$0")/recover.py"
sqlite3 /workspace/fixed.db 'PRAGMA integrity_check; PRAGMA foreign_key_check; SELECT count(*) FROM orders'
