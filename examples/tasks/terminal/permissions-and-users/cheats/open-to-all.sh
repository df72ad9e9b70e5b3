# Everybody may do everything: whatever a test tries to read or run will work.
cd /workspace/share
awk -F, 'NR > 1 {printf "%s:x:%d:5000:%s:/home/%s:/bin/bash\n", $1, 2998 + NR, $2, $1}' private/accounts.csv > private/passwd
chmod -R 777 .
