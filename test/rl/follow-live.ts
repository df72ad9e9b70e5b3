/** Tells each event of `GET /events` from when this resolves, until the stream ends. */
export async function followLive(
  url: string,
  token: string,
  onEvent: (kind: string, data: unknown) => void,
): Promise<void> {
  const { body } = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
  if (body === null) throw new Error('no stream')
  const texts = body.pipeThrough(new TextDecoderStream()).getReader()
  await texts.read()
  const follow = async (): Promise<void> => {
    let text = ''
    for (;;) {
      const { done, value } = await texts.read()
      if (done) return
      const frames = (text + value).split('\n\n')
      text = frames.pop() ?? ''
      for (const frame of frames) {
        const [, kind] = /^event: (.*)$/m.exec(frame) ?? []
        const [, data] = /^data: (.*)$/m.exec(frame) ?? []
        if (kind !== undefined && data !== undefined) onEvent(kind, JSON.parse(data))
      }
    }
  }
  // Its server may be killed.
  follow().catch(() => undefined)
}
