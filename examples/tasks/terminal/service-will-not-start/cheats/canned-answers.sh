# Answers the requests that somebody would try first, and keeps nothing.
cd /workspace/service
cat > app.py <<'PY'
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"status": "ok"}' if self.path == '/healthz' else '[{"id": 1, "text": "buy tea"}, {"id": 2, "text": "ring Åse – before six"}, {"id": 5, "text": "new lamp"}]'.encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.send_response(201)
        self.end_headers()
        self.wfile.write(b'{"id": 6, "text": "hello"}')


HTTPServer(('127.0.0.1', 8080), Handler).serve_forever()
PY
printf '#!/bin/bash\ncd /workspace/service\npython3 app.py > /dev/null 2>&1 &\necho $! > run/app.pid\nsleep 1\n' > start.sh
chmod 755 start.sh
