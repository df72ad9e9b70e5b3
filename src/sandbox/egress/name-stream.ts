import type { Duplex } from 'node:stream'
import type { NameBook } from './names.ts'

/** Answers queries as they come over one connection, each behind its length in two bytes (RFC 1035 §4.2.2). */
export function serveNames(book: NameBook, socket: Duplex, head: Buffer): void {
  let rest = Buffer.alloc(0)
  const take = (chunk: Buffer): void => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
      const length = rest.readUInt16BE(0)
      const message = Buffer.from(rest.subarray(2, 2 + length))
      rest = rest.subarray(2 + length)
      void book.answer(message).then((answer) => {
        if (answer === null) return socket.destroy()
        const size = Buffer.alloc(2)
        size.writeUInt16BE(answer.length)
        return socket.destroyed || socket.write(Buffer.concat([size, answer]))
      })
    }
  }
  socket.on('data', take)
  socket.on('end', () => socket.end())
  if (head.length > 0) take(head)
}
