#!/bin/bash
grep -qx done answer && test -s /architecture
echo $(($? == 0)) > /logs/verifier/reward.txt
