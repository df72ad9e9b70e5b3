#!/bin/bash
set -euo pipefail
git clone -q --no-hardlinks /workspace/shop /tmp/shop
cd /tmp/shop
git bisect start main "$(git rev-list --max-parents=0 main)" > /dev/null
git bisect run sh -c 'python3 -B -c "import src.price" 2>/dev/null || exit 125; ./selftest.sh 2>/dev/null' > /dev/null
culprit=$(git rev-parse refs/bisect/bad)
cd /workspace/shop
gone=$(git rev-list -1 main -- docs/RUNBOOK.md)
git show "$gone~1:docs/RUNBOOK.md" > /workspace/RUNBOOK.md
key=$(git log -p main -- deploy/settings.env | grep -oE 'pk_live_[0-9a-f]+' | head -n 1)
for commit in $(git fsck --unreachable --no-reflogs 2>/dev/null | awk '$2 == "commit" {print $3}'); do
  if git show --name-only --format= "$commit" | grep -qx src/cache.py; then lost=$commit; fi
done
printf '{"culprit": "%s", "leaked_key": "%s", "lost_commit": "%s"}\n' "$culprit" "$key" "$lost" > /workspace/answer.json
