#!/bin/bash
set -euo pipefail
here=$(dirname "$0")
cd /workspace/shop
git merge feature/discounts > /dev/null || true
cp "$here/cart.py" cart.py
printf '# Shop\n\nA cart with currencies and discount codes.\n' > README.md
printf '{\n  "max_lines": 200,\n  "timeout": 30,\n  "currency": "EUR",\n  "codes": ["SPRING", "STAFF"]\n}\n' > settings.json
# Both sides of the tests belong into the file: only the markers go.
git checkout --conflict=merge -- test_cart.py
sed -i -E '/^(<<<<<<<|=======|>>>>>>>)/d' test_cart.py
python3 -B test_cart.py
git add -A
git commit -q --no-edit
