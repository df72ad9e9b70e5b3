#!/bin/bash
# Nobody asks any more once the agent has begun.
sleep 1
wc -l < /checks > seen
echo done > answer
