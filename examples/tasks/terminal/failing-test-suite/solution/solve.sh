#!/bin/bash
set -euo pipefail
here=$(dirname "$0")
cp "$here/amounts.py" /workspace/ledger/amounts.py
cd /workspace && patch -p1 < "$here/accounts.patch"
python3 -m unittest
