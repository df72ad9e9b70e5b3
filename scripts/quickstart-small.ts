/** `./quickstart --model small`: a real model on the CPU, where nothing else is there. */
import { spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline/promises'
import { fileURLToPath } from 'node:url'
import { type Llamacpp, startLlamacpp } from './llamacpp.ts'

const up = fileURLToPath(new URL('llamacpp-up', import.meta.url))

/** What the model is, for who is about to look at its words. */
export const about = [
  'Model    SmolLM2-135M-Instruct (Apache-2.0), quantised to four bits, behind llama.cpp on this CPU. It is a real language model,',
  '         and the smallest of its family: it writes whole sentences, is often wrong, and its template knows no tools.',
]

/** Starts the server, once it is allowed to fetch what it needs. An exit code where there will be none. */
export async function smallModel(o: { readonly yes: boolean }): Promise<Llamacpp | number> {
  if (!o.yes && spawnSync('sh', [up, '--have']).status !== 0 && !(await allowed())) {
    console.error('quickstart: nothing was downloaded. Fix: --yes, or leave --model out for the scripted engine.')
    return 3
  }
  const made = spawnSync('sh', [up], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  return made.status === 0 ? startLlamacpp(made.stdout.trim()) : (made.status ?? 1)
}

async function allowed(): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    const answer = await terminal.question('Download 130 MB of Python packages into ~/.cache/paddock/real? [y/N] ')
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    terminal.close()
  }
}
