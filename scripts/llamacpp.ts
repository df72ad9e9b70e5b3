/** llama.cpp's server with SmolLM2-135M, as `scripts/llamacpp-up` set it up. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { freePort } from './free-port.ts'

/** A running server; its model is called `smollm2`. */
export interface Llamacpp extends AsyncDisposable {
  readonly url: string
}

/** `directory` is what `scripts/llamacpp-up` printed. Rejects with the server's last words when it ends before it is ready. */
export async function startLlamacpp(directory: string): Promise<Llamacpp> {
  const program = fileURLToPath(new URL('real/llamacpp_server.py', import.meta.url))
  const child = spawn(join(directory, 'bin/python'), [program, String(await freePort())], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const gone = once(child, 'exit')
  const last: string[] = []
  const ready = Promise.withResolvers<string>()
  for (const output of [child.stdout, child.stderr]) {
    createInterface({ input: output }).on('line', (line) => {
      last.push(line)
      if (last.length > 40) last.shift()
      const [, url] = /^ready (\S+)$/.exec(line) ?? []
      if (url !== undefined) ready.resolve(url)
    })
  }
  void gone.then(() => ready.reject(new Error(`llama.cpp ended before it was ready:\n${last.join('\n')}`)))
  return {
    url: await ready.promise,
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await gone
    },
  }
}
