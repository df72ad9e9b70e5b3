import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import { PaddockError } from '../../../core/index.ts'
import type { Box } from '../../../sandbox/index.ts'
import { browserUser } from '../browser/index.ts'

const unpack = promisify(zstdDecompress)

/** Where Xvfb keeps its screen as a file in memory (Xserver(1), -fbdir); the agent's user cannot reach it. */
export const framebufferDirectory = '/var/lib/browser/screen'

/**
 * The whole screen at once, four bytes a pixel. Through the X socket that is megabytes over the box's channel; read from the
 * server's own memory and compressed in the box it is a fiftieth of that. Throws `BROWSER_GONE`.
 */
export async function readFramebuffer(box: Box, sizeBytes: number): Promise<Buffer> {
  const result = await box.exec({
    command: ['zstd', '-q', '-1', '--single-thread', '--no-check', '-c', `${framebufferDirectory}/Xvfb_screen0`],
    user: browserUser,
    cwd: '/',
    maxOutputBytes: sizeBytes * 2,
  })
  if (result.kind !== 'exited' || result.code !== 0) {
    throw new PaddockError('BROWSER_GONE', `The screen of the X server cannot be read (${result.kind})`)
  }
  return pixelsOf(await unpack(result.stdout), sizeBytes)
}

/** What follows header and colours of an XWD file (X11/XWDFile.h: words of four bytes, the highest first). */
function pixelsOf(file: Buffer, sizeBytes: number): Buffer {
  const [headerBytes, colours] = [file.readUInt32BE(0), file.readUInt32BE(19 * 4)]
  const start = headerBytes + colours * 12
  if (file.length < start + sizeBytes)
    throw new PaddockError('BROWSER_GONE', 'The screen of the X server was cut short')
  return file.subarray(start, start + sizeBytes)
}
