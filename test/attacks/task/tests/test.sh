#!/bin/bash
# Runs what the agent wrote as a user that sees neither the tests nor the place of the reward.
reward=0
[ "$(cd /workspace && setpriv --reuid=1000 --regid=1000 --clear-groups timeout -s KILL 2 bash /workspace/add.sh 19 23 < /dev/null 2>/dev/null | head -c 100)" = 42 ] &&
[ "$(cd /workspace && setpriv --reuid=1000 --regid=1000 --clear-groups timeout -s KILL 2 bash /workspace/add.sh 5 6 < /dev/null 2>/dev/null | head -c 100)" = 11 ] && reward=1
echo "$reward" > /logs/verifier/reward.txt
