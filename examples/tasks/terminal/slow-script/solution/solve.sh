#!/bin/bash
set -euo pipefail
cd /workspace
python3 visits.py < example.txt > /tmp/before.txt
cp "$(dirname "$0")/visits.py" visits.py
python3 visits.py < example.txt | cmp - /tmp/before.txt
