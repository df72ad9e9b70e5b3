#!/bin/bash
# Sells COUNT of ITEM: sell.sh ITEM COUNT, data in $TILL_DIR.
here=$(cd "$(dirname "$0")" && pwd)
item=$1 count=$2
[[ $count =~ ^[1-9][0-9]*$ ]] || exit 2
if [ ! -f "$TILL_DIR/stock/$item" ]; then
  echo "sold out"
  exit 3
fi
# One lock for each item: the kernel drops it with the last process that holds it, however that ends.
mkdir -p "$TILL_DIR/locks"
exec 8> "$TILL_DIR/locks/$item"
flock 8
stock=$(cat "$TILL_DIR/stock/$item")
if [ "$stock" -lt "$count" ]; then
  echo "sold out"
  exit 3
fi
"$here/card.sh" "$item" "$count" || exit 4
left=$((stock - count))
echo "$left" > "$TILL_DIR/stock/.$item.$$"
mv "$TILL_DIR/stock/.$item.$$" "$TILL_DIR/stock/$item"
# A short line in append mode is written in one piece.
echo "$item $count $left" >> "$TILL_DIR/journal"
echo "sold"
