import type { Box } from '../../sandbox/index.ts'

/** Each path is a process in the box. */
const mostPaths = 5000

const script =
  'while IFS= read -r p; do if [ -L "$p" ]; then echo "link $(readlink "$p")"; elif [ -f "$p" ]; then sha256sum < "$p" 2>/dev/null || echo unreadable; elif [ -d "$p" ]; then echo directory; elif [ -e "$p" ]; then echo other; else echo none; fi; done'

/**
 * Paths whose content is not the same in two boxes of one image: files by their hash, links by their target; modes and times are not
 * compared. Null where what the boxes changed cannot be listed, or is too much to look at.
 */
export async function differingFiles(
  a: Box,
  b: Box,
  isNoise: (path: string) => boolean,
): Promise<readonly string[] | null> {
  const [inA, inB] = await Promise.all([a.touched(), b.touched()])
  if (inA === null || inB === null) return null
  const paths = [...new Set([...inA, ...inB])].filter((path) => !isNoise(path) && !path.includes('\n')).toSorted()
  if (paths.length > mostPaths) return null
  if (paths.length === 0) return []
  const [saidA, saidB] = await Promise.all([contentsOf(a, paths), contentsOf(b, paths)])
  return saidA === null || saidB === null ? null : paths.filter((_, at) => saidA[at] !== saidB[at])
}

/** A line per path. */
async function contentsOf(box: Box, paths: readonly string[]): Promise<readonly string[] | null> {
  const stdin = `${paths.join('\n')}\n`
  const result = await box.exec({ command: ['sh', '-c', script], cwd: '/', stdin, maxOutputBytes: 16 * 2 ** 20 })
  const lines = Buffer.from(result.stdout).toString().split('\n')
  return result.kind === 'exited' && result.code === 0 && lines.length === paths.length + 1 ? lines : null
}
