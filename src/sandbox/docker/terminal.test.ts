import { beforeAll, describe, expect, it } from 'vitest'
import { useBox } from '../../../test/fixtures/use-box.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import type { Box, TerminalScreen } from '../index.ts'

const shows =
  (words: string) =>
  ({ lines }: TerminalScreen): boolean =>
    lines.some((line) => line.includes(words))

describe.runIf(await requireDocker())('a terminal in a box', () => {
  let box: Box
  let cwd: string
  beforeAll(async () => {
    ;({ box, directory: cwd } = await useBox())
  })

  it('takes keys and shows what a person would see, also after a new size', async () => {
    await using terminal = box.openTerminal({
      columns: 60,
      rows: 10,
      env: { PS1: 'ready> ' },
      command: ['bash', '--norc'],
    })
    await terminal.screenWhere(shows('ready>'))
    terminal.write('tty; test -w "$(tty)" && echo mine; printf "a\\rB\\n"; stty size\r')
    const screen = await terminal.screenWhere(shows('10 60'))
    expect(screen.lines).toContain('mine')
    expect(screen.lines).toContain('B')
    terminal.resize(100, 30)
    terminal.write('clear; stty size\r')
    const resized = await terminal.screenWhere(({ lines }) => lines[0] === '30 100' && lines[1] === 'ready>')
    expect(resized).toMatchObject({ columns: 100, rows: 30, cursor: { column: 7, row: 1 } })
  })

  it('runs programs that paint the whole screen', async () => {
    await box.putFiles(cwd, [{ path: 'poem', data: 'first line\nsecond line\n' }])
    await using terminal = box.openTerminal({ command: ['nano', 'poem'], cwd })
    await terminal.screenWhere((screen) => shows('second line')(screen) && shows('^X')(screen))
    terminal.write('new ')
    await terminal.screenWhere(shows('new first line'))
    terminal.write('\x0f\r')
    await terminal.screenWhere(shows('Wrote 2 lines'))
    terminal.write('\x18')
    expect(await terminal.ended).toMatchObject({ kind: 'exited', code: 0 })
    const saved = await box.exec({ command: 'cat poem', cwd })
    expect(Buffer.from(saved.stdout).toString()).toBe('new first line\nsecond line\n')
  })

  it('passes Ctrl-C to what is in front, and is recorded', async () => {
    await using terminal = box.openTerminal({ command: ['bash', '--norc'], env: { PS1: '> ' } })
    terminal.write('sleep 1000\r')
    // The shell echoes the line before the program is in front, which is what the plus of `ps` says.
    const inFront = 'until ps -C sleep -o stat=,args= | grep -q "+.*sleep 1000"; do sleep 0.02; done'
    expect(await box.exec({ command: inFront })).toMatchObject({ kind: 'exited', code: 0 })
    terminal.write('\x03')
    await terminal.screenWhere((screen) => shows('^C')(screen) && screen.lines[screen.cursor.row] === '>')
    terminal.write('echo "sum $((40+2)) ü"\r')
    await terminal.screenWhere(shows('sum 42 ü'))
    const [header = '', ...lines] = terminal.recording().trim().split('\n')
    expect(JSON.parse(header)).toMatchObject({ version: 2, width: 80, height: 24 })
    const events: [number, string, string][] = lines.map((line) => JSON.parse(line))
    expect(events.map(([, , data]) => data).join('')).toContain('sum 42 ü')
    expect(events.map(([at]) => at)).toEqual(events.map(([at]) => at).toSorted((a, b) => a - b))
  })

  it('leaves nothing when it is closed', async () => {
    const terminal = box.openTerminal({ command: ['bash', '--norc'], env: { PS1: '> ' } })
    terminal.write('setsid -f sleep 1234; trap "" TERM HUP; echo armed\r')
    await terminal.screenWhere(({ lines }) => lines.includes('armed'))
    await terminal.close()
    const listing = await box.exec({ command: ['ps', '-eo', 'args='] })
    expect(Buffer.from(listing.stdout).toString()).not.toMatch(/sleep 1234|bash --norc/)
  })
})
