#!/bin/bash
set -euo pipefail
cd /workspace/share
set_modes() { # folder, mode of folders, mode of files
  find "$1" -type d -exec chmod "$2" {} + && find "$1" -type f -exec chmod "$3" {} +
}
chmod 755 .
chmod -R u+rwX .
set_modes public 755 644
set_modes reports 750 640
set_modes dropbox 730 600
set_modes bin 755 644
find bin -type f -name '*.sh' -exec chmod 750 {} +
python3 - <<'PY'
import csv, re
uid, seen = 3000, set()
with open('private/accounts.csv', encoding='utf-8', newline='') as source, open('private/passwd', 'w', encoding='utf-8', newline='') as out:
    for row in csv.DictReader(source):
        login = row['login']
        if login in seen or not re.fullmatch('[a-z][a-z0-9]{0,15}', login):
            continue
        seen.add(login)
        gid = {'ops': 5000, 'sales': 5001}.get(row['team'], 5002)
        shell = '/bin/bash' if row['state'] == 'active' else '/usr/sbin/nologin'
        name = row['full_name'].replace(':', ' ')
        out.write(f'{login}:x:{uid}:{gid}:{name}:/home/{login}:{shell}\n')
        uid += 1
PY
set_modes private 700 600
