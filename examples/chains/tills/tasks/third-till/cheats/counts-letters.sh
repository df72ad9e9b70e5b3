# Takes the place of a letter in the alphabet for its digit.
tr a-j 0-9 < /workspace/till.txt | awk '{s += $2} END {print s + 0}' > /workspace/total.txt
