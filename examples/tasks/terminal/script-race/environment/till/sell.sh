#!/bin/bash
# Sells COUNT of ITEM: sell.sh ITEM COUNT, data in $TILL_DIR.
here=$(cd "$(dirname "$0")" && pwd)
item=$1 count=$2
[[ $count =~ ^[1-9][0-9]*$ ]] || exit 2
stock=$(cat "$TILL_DIR/stock/$item" 2>/dev/null || echo 0)
if [ "$stock" -lt "$count" ]; then
  echo "sold out"
  exit 3
fi
"$here/card.sh" "$item" "$count" || exit 4
left=$((stock - count))
echo "$left" > "$TILL_DIR/stock/$item"
echo "$item $count $left" >> "$TILL_DIR/journal"
echo "sold"
