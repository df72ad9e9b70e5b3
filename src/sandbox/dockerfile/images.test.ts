import { describe, expect, it } from 'vitest'
import { usedImages, withImages } from './images.ts'

const uv = 'ghcr.io/org/uv:0.4'

describe('images that a Dockerfile takes something of', () => {
  it.each<[string, readonly string[]]>([
    ['FROM ubuntu:24.04\n', ['ubuntu:24.04']],
    [
      'FROM --platform=linux/amd64 paddock-base:latest AS a\nfrom debian\nRUN echo FROM x\n',
      ['paddock-base:latest', 'debian'],
    ],
    ['FROM a:1 AS one\nFROM one AS two\nCOPY --from=ONE /x /\nCOPY --from=0 /x /\nFROM scratch\n', ['a:1']],
    [
      'ARG GIVEN\nARG V=24.04\nARG BASE=ubuntu:${V}\nFROM ${BASE} AS x\nFROM $GIVEN\nFROM $UNKNOWN\n',
      ['ubuntu:24.04', 'given:1'],
    ],
    ['FROM ${UNSET:-debian:12}\nFROM debian${V:+:13}\n', ['debian:12', 'debian']],
    ['ARG V\nFROM a\nARG V=2\nFROM b:${V:-1}\n', ['a', 'b:1']],
    [
      `FROM a\nCOPY --chmod=755 --from=${uv} /uv /bin/\nRUN --mount=type=bind,from=b:2,target=/m cp /m/x /\n`,
      ['a', uv, 'b:2'],
    ],
    ['FROM \\\n  # why\n  a:1\n', ['a:1']],
    ['# escape=`\nFROM `\n  a:1\n', ['a:1']],
    ['FROM a\nRUN python3 - <<EOF\nfrom os import path\nFROM never\nEOF\nFROM b\n', ['a', 'b']],
    ['FROM a\nCOPY <<-"X" <<Y /x/\nFROM never\n\tX\nFROM never\nY\nFROM b\n', ['a', 'b']],
    ['FROM a\nRUN echo $((1<<EOF)) "cat <<EOF > x"\nFROM b\n', ['a', 'b']],
    [`FROM registry:5000/x/y@sha256:${'a'.repeat(64)}\n`, [`registry:5000/x/y@sha256:${'a'.repeat(64)}`]],
  ])('%j: %j', (dockerfile, images) => {
    expect(usedImages(dockerfile, { GIVEN: 'given:1' }).map(({ reference }) => reference)).toEqual(images)
  })

  it('get other names where they stand, line by line', () => {
    const text = [
      'ARG V=1',
      'FROM --platform=linux/amd64 a:${V} AS a',
      'FROM \\',
      '  b \\',
      '  AS b',
      `COPY --from=${uv} /${uv} /bin/`,
      'RUN --mount=type=bind,from=b:2,target=/m echo b:2',
      'COPY --from=b /x /',
    ].join('\n')
    const used = usedImages(text)
    expect(used.map(({ platform }) => platform)).toEqual(['linux/amd64', null, null, null])
    const names = new Map(used.map((one, i) => [one, `new:${i}`]))
    expect(withImages(text, names)).toBe(
      [
        'ARG V=1',
        'FROM --platform=linux/amd64 new:0 AS a',
        'FROM \\',
        '  new:1 \\',
        '  AS b',
        `COPY --from=new:2 /${uv} /bin/`,
        'RUN --mount=type=bind,from=new:3,target=/m echo b:2',
        'COPY --from=b /x /',
      ].join('\n'),
    )
  })
})
