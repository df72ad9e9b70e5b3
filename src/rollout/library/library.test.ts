/** What counts as use of a library's file, measured in a real box. */
import { beforeAll, describe, expect, test } from 'vitest'
import { useBox } from '../../../test/fixtures/use-box.ts'
import { sha256 } from '../../core/index.ts'
import { packArtifact } from '../../envs/index.ts'
import type { Box } from '../../sandbox/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { libraryPlace, putLibrary, usedOf } from './library.ts'

const { signal } = new AbortController()
const text = (line: string) => new TextEncoder().encode(line)

describe.runIf(await requireDocker())('use of a library', () => {
  let box: Box
  let digest: string
  const stored = new Map<string, Uint8Array>()
  const blobs = {
    get: async (of: string) => stored.get(of) ?? new Uint8Array(),
  }
  beforeAll(async () => {
    ;({ box } = await useBox())
    const file = (path: string, data: string, mode: number) => ({ type: 'file' as const, path, data: text(data), mode })
    const entries = [file('good.sh', 'echo solved\n', 0o755), file('notes/other.txt', 'nothing\n', 0o644)]
    const content = { found: true, entries, refused: [], cutShort: false, totalBytes: 20 }
    const packed = await packArtifact({ path: libraryPlace, content: content as never })
    stored.set(packed.sha256, packed.data)
    digest = packed.sha256
    expect(sha256(packed.data)).toBe(digest)
  })

  /** The files that a member used who did this with the library. */
  async function usedBy(command: string): Promise<readonly string[] | null> {
    await box.exec({ command: `rm -rf ${libraryPlace}/* ${libraryPlace}/.??* /tmp/x /tmp/there; mkdir /tmp/there` })
    const put = await putLibrary(box, blobs as never, { sha256: digest, from: null }, signal)
    const ran = await box.exec({ command, cwd: libraryPlace })
    if (ran.kind !== 'exited' || ran.code !== 0) throw new Error(`${command}: ${Buffer.from(ran.stderr).toString()}`)
    return usedOf(box, put, signal)
  }
  const python = (line: string) => `python3 -c 'import mmap, os, shutil; ${line}'`

  test.each([
    ['run', 'sh good.sh'],
    ['run by its name', './good.sh'],
    ['cp', 'cp good.sh /tmp/x'],
    ['cp of all', 'cp -r . /tmp/there'],
    ['cp and run', 'cp good.sh /tmp/x && sh /tmp/x'],
    ['cat >', 'cat good.sh > /tmp/x'],
    ['install', 'install -m 755 good.sh /tmp/x'],
    ['ln and run', 'ln good.sh /tmp/x && sh /tmp/x'],
    ['ln -s and run', 'ln -s /library/good.sh /tmp/x && sh /tmp/x'],
    ['tar', 'tar -cf - good.sh | tar -xf - -C /tmp/there'],
    ['python shutil.copyfile', python('shutil.copyfile("good.sh", "/tmp/x")')],
    ['python shutil.move to another file system', python('shutil.copy2("good.sh", "/dev/shm/x")')],
    ['python sendfile', python('os.sendfile(os.open("/tmp/x", 65), os.open("good.sh", 0), 0, 99)')],
    ['python mmap', python('print(mmap.mmap(os.open("good.sh", 0), 0, prot=1)[:])')],
    ['dd', 'dd if=good.sh of=/tmp/x'],
    ['mv and run', 'mv good.sh /tmp/x && sh /tmp/x'],
    [
      'cp, then changed and run',
      'cp good.sh /tmp/x && cat /tmp/x > good.sh && echo echo more >> good.sh && sh good.sh',
    ],
    ['grep', 'grep -r solved .'],
    ['head', 'head -c 1 good.sh'],
  ])('%s', async (_, command) => {
    expect(await usedBy(command)).toContain('good.sh')
  })

  test.each([
    ['nothing', 'true'],
    ['looked at by name', 'ls -lR; find .; stat good.sh; du -a'],
    ['moved and not read', 'mv good.sh /tmp/x'],
    ['a link that was never read', 'ln good.sh /tmp/x; ln -s /library/good.sh /tmp/there/y'],
    ['written over', 'echo echo other > good.sh'],
    ['made longer', 'echo echo other >> good.sh'],
    [
      'another file read',
      'mkdir -p /tmp/there/library && echo > /tmp/there/library/good.sh && cat /tmp/there/library/good.sh',
    ],
  ])('not used: %s', async (_, command) => {
    expect(await usedBy(command)).toEqual([])
  })

  test.each([
    ['removed, perhaps after it was read', 'rm good.sh'],
    ['read and removed', 'cp good.sh /tmp/x; rm good.sh'],
    ['replaced', 'sed -i s/solved/done/ good.sh'],
    ['moved to another file system', 'mv good.sh /dev/shm/x2'],
  ])('unknown: %s', async (_, command) => {
    expect(await usedBy(command)).toBeNull()
  })

  test('copies inside the kernel are refused as ones that it does not know, so that every copy reads', async () => {
    const command = python(`
try: print(os.copy_file_range(os.open("/etc/passwd", 0), os.open("/tmp/x3", 65), 10))
except OSError as error: print(error.errno)`)
    const { stdout } = await box.exec({ command })
    expect(Buffer.from(stdout).toString()).toBe('38\n')
  })
})
