import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { DaemonWords, follow } from './progress.ts'

const streamOf = (...messages: readonly object[]) =>
  Readable.from(messages.map((message) => Buffer.from(`${JSON.stringify(message)}\r\n`)))

it.each([
  ['the red of what a command says on stderr', '\u001b[91mE: no such version\n\u001b[0m', ['E: no such version']],
  ['colours of a program of its own', '\u001b[1;32m ok\u001b[0m done\n', ['ok done']],
  ['a bar that is drawn again and again', ' 10% ##\r 55% ####\r100% ######\r\n', ['100% ######']],
  ['nothing but a change of colour', '\u001b[0m', []],
])('a line of a build is what a terminal would show: %s', async (_, stream, shown) => {
  const lines: string[] = []
  await follow(streamOf({ stream }), (line) => lines.push(line))
  expect(lines).toEqual(shown)
})

it('what the daemon said before it failed has no colours either', async () => {
  const told = follow(streamOf({ stream: '\u001b[91mE: no\n\u001b[0m' }, { error: 'code 100' }), () => undefined)
  await expect(told).rejects.toThrow(DaemonWords)
  await expect(told).rejects.toMatchObject({ message: 'code 100', log: ['E: no'] })
})
