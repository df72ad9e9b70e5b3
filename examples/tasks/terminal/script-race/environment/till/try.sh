#!/bin/bash
# Twenty customers at once want one tea each; fifteen are there.
cd "$(dirname "$0")" || exit 1
TILL_DIR=$(mktemp -d) && export TILL_DIR
mkdir "$TILL_DIR/stock" && echo 15 > "$TILL_DIR/stock/tea" && : > "$TILL_DIR/journal"
for _ in $(seq 20); do ./sell.sh tea 1 > /dev/null & done
wait
echo "left $(cat "$TILL_DIR/stock/tea") (should be 0), sold $(wc -l < "$TILL_DIR/journal") (should be 15)"
[ "$(cat "$TILL_DIR/stock/tea")" = 0 ] && [ "$(wc -l < "$TILL_DIR/journal")" = 15 ]
