set -eu
cd /workspace/service
mkdir -p data run
printf '{"id": 1, "text": "buy tea"}\n{"id": 2, "text": "ring Åse – before six"}\n{"id": 5, "text": "new lamp"}\n{"id": 6, "te' > data/notes.jsonl
echo 1 > run/app.pid
sed -i 's/$/\r/' start.sh
chmod 644 start.sh
chown -R agent:agent /workspace
