import { SseSplitter } from '../../http/sse.ts'
import type { UpstreamSink } from '../../upstream.ts'
import { StreamedReply, wholeReply } from './chat-reply.ts'

/** Hears an answer of SGLang's chat route and tells it in the shape of vLLM's. Errors pass unchanged. */
export function sglangChatSink(sink: UpstreamSink): UpstreamSink {
  let kind: 'error' | 'stream' | 'whole' = 'error'
  const splitter = new SseSplitter()
  const streamed = new StreamedReply()
  const received: Buffer[] = []
  const tell = (payload: Buffer) => sink.chunk(Buffer.concat([dataPrefix, payload, eventEnd]))
  const flush = () => {
    for (const payload of streamed.end()) tell(payload)
  }
  return {
    head(status, headers) {
      const type = headers['content-type']
      if (status < 400) kind = typeof type === 'string' && type.startsWith('text/event-stream') ? 'stream' : 'whole'
      sink.head(status, headers)
    },
    chunk(bytes) {
      if (kind === 'error') return sink.chunk(bytes)
      // Whatever becomes of the bytes: the engine was heard.
      sink.chunk(nothing)
      if (kind === 'whole') {
        received.push(bytes)
        return
      }
      for (const { payload, bytes: event } of splitter.push(bytes)) {
        if (payload === null) sink.chunk(event)
        else if (payload.equals(doneMark)) {
          flush()
          tell(payload)
        } else for (const one of streamed.event(payload)) tell(one)
      }
    },
    end() {
      if (kind === 'stream') flush()
      if (kind === 'whole') sink.chunk(wholeReply(Buffer.concat(received)))
      sink.end()
    },
    failed(error) {
      // A stream that broke off behind its finishing events has them to tell, without ids.
      if (kind === 'stream') flush()
      sink.failed(error)
    },
  }
}

const dataPrefix = Buffer.from('data: ')
const eventEnd = Buffer.from('\n\n')
const doneMark = Buffer.from('[DONE]')
const nothing = Buffer.alloc(0)
