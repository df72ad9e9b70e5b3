/**
 * Prints the test files that cost most, so that growth is seen. `PADDOCK_COSTS=FILE` writes all of them to that file: CPU seconds, tests,
 * path. Boxes are not counted: they are the daemon's children.
 */
import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { Reporter, TestModule } from 'vitest/node'

const shown = 10

export default class CostTable implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const files = modules
      .map((module) => ({
        path: relative('', module.moduleId),
        cpuS: module.meta().cpuS ?? 0,
        tests: [...module.children.allTests()].length,
      }))
      .toSorted((a, b) => b.cpuS - a.cpuS)
    const sum = files.reduce((total, { cpuS }) => total + cpuS, 0)
    console.log(`CPU seconds of the test files, without boxes: ${sum.toFixed(0)}`)
    for (const { path, cpuS } of files.slice(0, shown)) console.log(`${cpuS.toFixed(1).padStart(7)}  ${path}`)
    const file = process.env['PADDOCK_COSTS']
    if (file === undefined) return
    writeFileSync(file, files.map(({ path, cpuS, tests }) => `${cpuS.toFixed(1)}\t${tests}\t${path}\n`).join(''))
  }
}
