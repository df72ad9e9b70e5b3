import { describe, expect, it } from 'vitest'
import { factsOf } from './dockerfile.ts'

describe('what a Dockerfile says of the commands in its image', () => {
  it.each([
    ['FROM ubuntu:24.04\nWORKDIR /app\nWORKDIR src\n', '/app/src'],
    ['FROM paddock-base\nRUN true\n', '/workspace'],
    ['FROM paddock-debian:latest\n', '/'],
    ['FROM paddock-base\nWORKDIR ../srv\n', '/srv'],
    ['FROM ubuntu:24.04\nRUN true\n', null],
    ['FROM ubuntu:24.04\nWORKDIR app\n', null],
    ['ARG ROOT=/one\nFROM ubuntu:24.04\nARG ROOT\nENV APP=$ROOT/app OTHER="a b"\nWORKDIR ${APP}/x\n', '/one/app/x'],
    ['FROM ubuntu:24.04\nWORKDIR ${GIVEN:-/srv}\n', '/srv'],
    ['FROM ubuntu:24.04\nENV A=/one\nENV A=/two B=$A\nWORKDIR $B\n', '/one'],
    ['FROM ubuntu:24.04\nENV A=/one\nARG A=/two\nWORKDIR $A\n', '/one'],
    ['FROM ubuntu:24.04\nARG A=/one\nENV A=/two\nWORKDIR $A\n', '/two'],
    ['FROM ubuntu:24.04 AS made\nWORKDIR /made\nFROM made\nRUN true\n', '/made'],
    ['FROM ubuntu:24.04 AS made\nWORKDIR /made\nFROM paddock-base\nCOPY --from=made /made .\n', '/workspace'],
    ['# escape=`\nFROM ubuntu:24.04\nWORKDIR `\n  /app\n', '/app'],
    ['FROM ubuntu:24.04\nRUN <<END\nWORKDIR /never\nEND\nWORKDIR "/quoted"\n', '/quoted'],
    ['FROM ubuntu:24.04\n# WORKDIR /never\nWORKDIR \\\n# between\n /app\n', '/app'],
  ])('%j: work directory %s', (dockerfile, workdir) => {
    expect(factsOf(dockerfile).workdir).toBe(workdir)
  })

  it.each([
    ['FROM ubuntu:24.04\nUSER root\nRUN true\nUSER app:app\n', 'app:app'],
    ['FROM ubuntu:24.04\nENV WHO=me\nUSER $WHO\n', 'me'],
    ['FROM ubuntu:24.04 AS made\nUSER app\nFROM made\n', 'app'],
    ['FROM ubuntu:24.04\n', null],
  ])('%j: user %s', (dockerfile, user) => {
    expect(factsOf(dockerfile).user).toBe(user)
  })

  it.each([
    ['FROM ubuntu:24.04\nENTRYPOINT ["/start.sh"]\nCMD ["serve"]\n', true],
    ['FROM ubuntu:24.04\nEntryPoint exec start\n', true],
    ['FROM ubuntu:24.04 AS made\nENTRYPOINT ["/start.sh"]\nFROM made\nENTRYPOINT []\n', false],
    ['FROM ubuntu:24.04 AS other\nENTRYPOINT ["/start.sh"]\nFROM ubuntu:24.04\nCMD ["serve"]\n', false],
  ])('%j: has an entry point: %s', (dockerfile, has) => {
    expect(factsOf(dockerfile).hasEntrypoint).toBe(has)
  })

  const docker = { intervalMs: 30_000, timeoutMs: 30_000, startPeriodMs: 0, startIntervalMs: 5000, retries: 3 }
  it.each([
    ['FROM a\nHEALTHCHECK CMD test -e $HOME/up\n', { ...docker, command: 'test -e $HOME/up' }],
    [
      'FROM a\nHEALTHCHECK --interval=1m30s --timeout=500ms \\\n --retries=5 --start-period=2s CMD ["echo", "it\'s"]\n',
      { ...docker, intervalMs: 90_000, timeoutMs: 500, retries: 5, startPeriodMs: 2000, command: "'echo' 'it'\\''s'" },
    ],
    ['FROM a AS b\nHEALTHCHECK CMD true\nFROM b\n', { ...docker, command: 'true' }],
    ['FROM a AS b\nHEALTHCHECK CMD true\nFROM b\nHEALTHCHECK NONE\n', null],
    ['FROM a\n', null],
  ])('%j: healthcheck %j', (dockerfile, check) => {
    expect(factsOf(dockerfile).healthcheck).toEqual(check)
  })

  it.each([
    ['FROM a\nVOLUME /data\n', '/data'],
    ['FROM a AS b\nVOLUME ["/data", "/more"]\nFROM b\n', '/data'],
    ['FROM a AS b\nVOLUME /data\nFROM a\n', null],
  ])('%j: volume %s', (dockerfile, volume) => {
    expect(factsOf(dockerfile).volume).toBe(volume)
  })
})
