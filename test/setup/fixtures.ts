/** What fixtures made for a whole file goes when it ends: this hook is registered first, so it runs behind those of the file. */
import { afterAll } from 'vitest'
import { endFile } from '../fixtures/at-end.ts'

afterAll(endFile)
