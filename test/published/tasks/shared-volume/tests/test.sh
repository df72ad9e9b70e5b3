#!/bin/bash
grep -qx done answer
echo $(($? == 0)) > /logs/verifier/reward.txt
