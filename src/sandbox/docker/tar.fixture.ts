import { buffer } from 'node:stream/consumers'
import { PassThrough } from 'node:stream'
import { pack } from 'tar-stream'

/** A tar of these files. */
export async function tarOf(files: Readonly<Record<string, string>>): Promise<Buffer> {
  const tar = pack()
  for (const [name, text] of Object.entries(files)) tar.entry({ name }, text)
  tar.finalize()
  return buffer(tar.pipe(new PassThrough()))
}
