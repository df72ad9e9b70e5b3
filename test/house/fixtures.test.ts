/** The fixtures of `test/fixtures`: what they share, what they do not, and how it ends. */
import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { closeAll } from '../fixtures/close-all.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { useServe } from '../fixtures/use-serve.ts'
import { useStore } from '../fixtures/use-store.ts'

it('useStore() and useServe() give one store and one server, however often they are called', async () => {
  const [store, again, serve] = [await useStore(), await useStore(), await useServe()]
  expect(again).toBe(store)
  expect(await useServe()).toBe(serve)
  expect(serve.data).not.toBe(store.directory)
})

it('no test closes the shared store', async () => {
  const store = await useStore()
  await expect(store.close()).rejects.toThrow('closes with its worker')
  await expect(store[Symbol.asyncDispose]()).rejects.toThrow('closes with its worker')
  await store.recorder.flush()
  expect(existsSync(store.directory)).toBe(true)
})

let url = ''
it('useEngine() starts another engine each time, without scripts of the one before', async () => {
  const [one, two] = [await useEngine(), await useEngine()]
  url = one.url
  await one.control('/scripts', { instruction: 'x', candidates: [{ name: 'only', weight: 0, steps: [{ say: 'y' }] }] })
  const scripts = async (of: string) => ((await (await fetch(`${of}/control`)).json()) as { scripts: number }).scripts
  expect([await scripts(one.url), await scripts(two.url)]).toEqual([1, 0])
})

it('an engine ends with its test', async () => {
  await expect(fetch(url)).rejects.toThrow('fetch failed')
})

it('closeAll() takes the last one first, and throws the first failure after the others', async () => {
  const closed: string[] = []
  const close = (name: string, fails: boolean) => () => {
    closed.push(name)
    if (fails) throw new Error(name)
  }
  await expect(closeAll([close('a', false), close('b', true), close('c', true)])).rejects.toThrow('c')
  expect(closed).toEqual(['c', 'b', 'a'])
})
