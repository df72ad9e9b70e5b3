#!/bin/bash
set -euo pipefail
cp "$(dirname "$0")/report.py" /workspace/report.py
python3 /workspace/report.py /workspace/sample/in /tmp/report.csv
cmp /tmp/report.csv /workspace/sample/expected.csv
