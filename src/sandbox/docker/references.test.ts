import { describe, expect, it } from 'vitest'
import { canonical, mapped, mirrored, withVersion } from './references.ts'

const digest = `sha256:${'b'.repeat(64)}`

describe('names of images', () => {
  it.each([
    ['ubuntu', 'docker.io/library/ubuntu:latest', 'ubuntu:latest'],
    ['docker.io/ubuntu:24.04', 'docker.io/library/ubuntu:24.04', 'docker.io/ubuntu:24.04'],
    ['index.docker.io/library/ubuntu', 'docker.io/library/ubuntu:latest', 'index.docker.io/library/ubuntu:latest'],
    ['org/app', 'docker.io/org/app:latest', 'org/app:latest'],
    ['localhost/app', 'localhost/app:latest', 'localhost/app:latest'],
    ['host:5000/app:1', 'host:5000/app:1', 'host:5000/app:1'],
    [`ubuntu@${digest}`, `docker.io/library/ubuntu@${digest}`, `ubuntu@${digest}`],
    [`ghcr.io/a/b:1@${digest}`, `ghcr.io/a/b:1@${digest}`, `ghcr.io/a/b:1@${digest}`],
  ])('%s is %s', (text, whole, versioned) => {
    expect([canonical(text), withVersion(text)]).toEqual([whole, versioned])
  })

  it('are looked up in the map whole, and only there', () => {
    const sources = { map: { 'ubuntu:24.04': 'mine:1', 'docker.io/library/debian': 'mine:2' }, mirrors: [] }
    expect(
      ['docker.io/library/ubuntu:24.04', 'debian:latest', 'ubuntu', `ubuntu:24.04@${digest}`].map((name) =>
        mapped(name, sources),
      ),
    ).toEqual(['mine:1', 'mine:2', 'ubuntu', `ubuntu:24.04@${digest}`])
  })

  it('of Docker Hub have other names in mirrors', () => {
    const sources = { map: {}, mirrors: ['one:5000', 'two.example/hub'] }
    expect(mirrored('ubuntu:24.04', sources)).toEqual([
      'one:5000/library/ubuntu:24.04',
      'two.example/hub/library/ubuntu:24.04',
    ])
    expect(mirrored(`org/x@${digest}`, sources)).toEqual([
      `one:5000/org/x@${digest}`,
      `two.example/hub/org/x@${digest}`,
    ])
    expect(mirrored('ghcr.io/a/b', sources)).toEqual([])
  })
})
