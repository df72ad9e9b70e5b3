import { Duplex } from 'node:stream'
import type { Box } from '../../../sandbox/index.ts'
import { InputQueue } from '../browser/index.ts'

/** A unix socket of a box as a stream on the host, over the box's own channel: one long command, nothing per message. */
export function socketInBox(box: Box, o: { readonly path: string; readonly user: string }): Duplex {
  const input = new InputQueue()
  const stop = new AbortController()
  const stream = new Duplex({
    write: (chunk: Buffer, _encoding, done) => {
      input.push(chunk)
      done()
    },
    read: () => undefined,
    final: (done) => {
      input.end()
      done()
    },
    destroy: (error, done) => {
      stop.abort(new Error('the stream was closed'))
      done(error)
    },
  })
  box
    .exec(
      {
        command: ['nc', '-U', o.path],
        cwd: '/',
        user: o.user,
        stdin: input,
        output: 'told',
        timeoutMs: 7 * 24 * 3600_000,
        graceMs: 200,
        onStdout: (chunk) => stream.push(Buffer.from(chunk)),
      },
      { signal: stop.signal },
    )
    .then(
      () => stream.push(null),
      () => stream.push(null),
    )
  return stream
}
