#!/bin/bash
grep -qx done answer && test "$(cat seen)" -eq 3
echo $(($? == 0)) > /logs/verifier/reward.txt
