/** A real `vllm serve` on loopback, from what `scripts/real-up` set up. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** What `scripts/real-up` printed; `npm run real` sets it, and without it there is no lane. */
export const cache = process.env['PADDOCK_REAL'] ?? ''

/** Models that `scripts/real-up` made. */
export type RealModel = 'smollm2' | 'qwen3-tiny' | 'llama3-tiny'

/** Where a model's weights and tokenizer lie. */
export const weights = (model: RealModel): string => join(cache, 'models', model)

/** A running server. */
export interface RealServer extends AsyncDisposable {
  readonly url: string
  readonly model: RealModel
}

/** One thread and little memory: these servers share a small machine with the tests. */
const small = {
  VLLM_CPU_KVCACHE_SPACE: '1',
  VLLM_CPU_OMP_THREADS_BIND: 'nobind',
  OMP_NUM_THREADS: '2',
  HF_HUB_OFFLINE: '1',
  VLLM_NO_USAGE_STATS: '1',
  DO_NOT_TRACK: '1',
  VLLM_SERVER_DEV_MODE: '1',
}

/** Starts vLLM with a model and waits until it says that it is ready. Rejects with its last words when it ends before. */
export async function startVllm(model: RealModel, flags: readonly string[] = []): Promise<RealServer> {
  const port = await freePort()
  // The console script of the CPU package asks for a package of another name; its module does not.
  const args = ['-m', 'vllm.entrypoints.openai.api_server', '--model', weights(model), '--served-model-name', model]
  const size = ['--max-model-len', '2048', '--max-num-seqs', '8', '--dtype', 'float32', '--enforce-eager']
  const open = ['--host', '127.0.0.1', '--port', String(port), '--enable-scale-out', '--generation-config', 'vllm']
  const child = spawn(join(cache, 'venv/bin/python'), [...args, ...size, ...open, ...flags], {
    env: { ...process.env, ...small },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const gone = once(child, 'exit')
  const last: string[] = []
  const ready = Promise.withResolvers<void>()
  for (const output of [child.stdout, child.stderr]) {
    createInterface({ input: output }).on('line', (line) => {
      last.push(line)
      if (last.length > 60) last.shift()
      if (line.includes('Application startup complete')) ready.resolve()
    })
  }
  void gone.then(() => ready.reject(new Error(`vLLM ended before it was ready:\n${last.join('\n')}`)))
  await ready.promise
  return {
    url: `http://127.0.0.1:${port}`,
    model,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await gone
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}
