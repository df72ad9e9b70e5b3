import { expect, it } from 'vitest'
import { originOf } from './origin.ts'

it.each([
  ['127.0.0.1', 'http://127.0.0.1:80'],
  ['0.0.0.0', 'http://127.0.0.1:80'],
  ['::', 'http://[::1]:80'],
  ['fe80::1', 'http://[fe80::1]:80'],
  ['gpu-3', 'http://gpu-3:80'],
])('a listener on %s is reached at %s', (host, origin) => {
  expect(originOf(host, 80)).toBe(origin)
})
