#!/bin/bash
if [ "$(head -c 100 /workspace/total.txt 2>/dev/null | tr -d '[:space:]')" = 227878 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
