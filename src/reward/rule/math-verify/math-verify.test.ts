/** The rule that asks math-verify itself, from its package. */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { installedPython } from '../../../../test/torture/clients.ts'
import { tempDir } from '../../../../test/fixtures/temp-dir.ts'
import { math, mathVerify } from '../rules.ts'

let python = ''
beforeAll(async () => {
  python = await installedPython(['math-verify==0.9.0'])
}, 300_000)

/** A Python that a shell script starts after `first`. */
function scripted(first: string, command: string): string {
  const path = join(tempDir(), 'python')
  writeFileSync(path, `#!/bin/sh\n${first}\nexec ${command} "$@"\n`)
  chmodSync(path, 0o755)
  return path
}

const hanging = '\\boxed{9^{9^{9^{9}}}}'

describe('mathVerify', () => {
  it.each([
    [String.raw`\frac{1}{2}`, 'So it is $0.5$.', 1],
    [String.raw`\frac{1}{2}`, String.raw`\boxed{\frac{2}{4}}`, 1],
    [String.raw`\frac{1}{2}`, String.raw`\boxed{\frac{2}{3}}`, 0],
    [String.raw`$x^2 + \boxed{3}$`, '3', 1],
    [String.raw`(x+1)^2`, String.raw`\boxed{x^2+2x+1}`, 1],
    [String.raw`\{1,2\}`, String.raw`\boxed{\{2, 1\}}`, 1],
    ['5', 'I do not know.', 0],
    ['5', '', 0],
  ])('takes for %s the answer %j as math-verify does: %d', async (gold, answer, value) => {
    expect(await mathVerify(gold, { python })(answer)).toMatchObject({ value })
  })

  it('takes what math does not, which is why math is the default', async () => {
    const [gold, answer] = [String.raw`5\text{ mg}`, String.raw`\boxed{5\text{ Mg}}`]
    expect([await mathVerify(gold, { python })(answer), await math(gold)(answer)]).toMatchObject([
      { value: 1 },
      { value: 0 },
    ])
  })

  it('starts one process, which gets no secret, and cuts an answer that hangs while the loop turns', async () => {
    const seen = join(tempDir(), 'seen')
    vi.stubEnv('PADDOCK_TEST_SECRET', 'secret')
    const counted = scripted(`env >> ${seen}; echo started >> ${seen}`, python)
    const starts = (): number =>
      readFileSync(seen, 'utf8')
        .split('\n')
        .filter((line) => line === 'started').length
    const rule = mathVerify('5', { python: counted })
    expect([await rule('5'), await rule('6'), await mathVerify('6', { python: counted })('6')]).toMatchObject([
      { value: 1 },
      { value: 0 },
      { value: 1 },
    ])
    expect(starts()).toBe(1)
    let turns = 0
    const watch = setInterval(() => (turns += 1), 1)
    const error = { code: 'RULE_FAILED', message: expect.stringContaining('longer than 10000 ms') }
    await expect(rule(hanging)).rejects.toMatchObject(error)
    clearInterval(watch)
    expect(turns).toBeGreaterThan(0)
    expect(await rule('5')).toMatchObject({ value: 1 })
    expect(starts()).toBe(2)
    expect(readFileSync(seen, 'utf8')).not.toContain('secret')
  })

  it('has no value if math-verify raises, or finds nothing in the gold', async () => {
    const raised = mathVerify(String.raw`x\ne -5`, { python })(String.raw`\boxed{x \neq -6}`)
    await expect(raised).rejects.toMatchObject({ code: 'RULE_FAILED', message: expect.stringContaining('KeyError') })
    const nothing = mathVerify(String.raw`\boxed{`, { python })('5')
    await expect(nothing).rejects.toMatchObject({ message: expect.stringContaining('nothing is found in the gold') })
    expect(() => mathVerify(' ')).toThrow(RangeError)
  })

  it('has no value if its process is killed, and the next answer has one again', async () => {
    const pid = join(tempDir(), 'pid')
    const rule = mathVerify('5', { python: scripted(`echo $$ > ${pid}`, python) })
    await rule('5')
    const asked = rule(hanging)
    process.kill(Number(readFileSync(pid, 'utf8')), 'SIGKILL')
    await expect(asked).rejects.toMatchObject({ message: expect.stringContaining('ended with SIGKILL') })
    expect(await rule('5')).toMatchObject({ value: 1 })
  })

  it.each([
    ['no such program', () => '/nowhere/python'],
    ['a Python without the package', () => scripted('', 'python3 -S')],
    ['a program that is no Python', () => scripted('exit 0', 'true')],
  ])('says what to run if there is %s', async (_, make) => {
    const broken = make()
    const failed = mathVerify('5', { python: broken })('5')
    await expect(failed).rejects.toMatchObject({
      code: 'RULE_FAILED',
      fix: expect.stringContaining(`Run: ${broken} -m pip install math-verify==0.9.0.`),
    })
  })

  it('refuses another version of the package', async () => {
    const folder = tempDir()
    const other = `import importlib.metadata as m\nm.version = lambda name: "0.8.0"\n`
    writeFileSync(join(folder, 'sitecustomize.py'), other)
    const failed = mathVerify('5', { python: scripted(`export PYTHONPATH=${folder}`, python) })('5')
    await expect(failed).rejects.toMatchObject({
      message: expect.stringContaining('its version is 0.8.0'),
      fix: expect.stringContaining('pip install math-verify==0.9.0'),
    })
  })
})
