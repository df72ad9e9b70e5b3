import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  root: at('.'),
  build: { outDir: at('../dist/web'), emptyOutDir: true, assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
})
