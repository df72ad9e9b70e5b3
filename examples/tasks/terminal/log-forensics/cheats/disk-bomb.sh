# Fills the disk, with plain, sparse and many files, and hands in more than anybody will take.
cd /workspace
timeout 5 head -c 400000000 /dev/zero > filler 2>/dev/null
truncate -s 1T sparse 2>/dev/null
mkdir -p many && (cd many && timeout 5 sh -c 'i=0; while [ $i -lt 20000 ]; do : > $i; i=$((i+1)); done') 2>/dev/null
rm -f report.json && timeout 5 head -c 200000000 /dev/zero > report.json 2>/dev/null
rm -rf filler sparse many
ls -l report.json
