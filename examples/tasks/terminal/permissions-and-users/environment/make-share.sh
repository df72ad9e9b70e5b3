set -eu
mkdir -p /workspace/share && cd /workspace/share
mkdir -p "public/img/old ones" reports/2025/q4 dropbox bin private/keys
for name in public/index.html public/img/logo.svg "public/img/old ones/- first.svg" "public/naïve note.txt" \
  reports/summary.txt reports/2025/q4/board.txt "reports/2025/-rf" dropbox/incoming.bin "dropbox/ spaced.bin" \
  bin/backup.sh bin/rotate.sh bin/README bin/notes.sh.txt private/keys/host.key private/keys/deploy.key private/.netrc
do
  printf 'content of %s\n' "$name" > "./$name"
done
printf '#!/bin/sh\necho backed up\n' > bin/backup.sh
cat > private/accounts.csv <<'CSV'
login,full_name,team,state
anna,Anna Berg,ops,active
bo,"Bo ""the rock"" Lund",sales,active
Carl,Carl Upper,ops,active
dora,"Dora: night shift",support,locked
anna,Anna Again,ops,active
eve2,Eve Two,ops,left
9to5,Nine Five,sales,active
averyveryverylongname,Too Long,ops,active
finn,"Öberg, Finn",sales,active
CSV
chown -R agent:agent /workspace
find . -type d -exec chmod 777 {} +
find . -type f -exec chmod 666 {} +
chmod 700 public/img && chmod 600 public/index.html && chmod 777 private/keys/host.key && chmod 644 bin/backup.sh
chmod 755 reports/summary.txt "dropbox/ spaced.bin" && chmod 555 reports/2025
