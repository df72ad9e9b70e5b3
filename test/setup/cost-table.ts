/** Prints the test files that cost most, so that growth is seen. Boxes are not in it: they are the daemon's children. */
import { relative } from 'node:path'
import type { Reporter, TestModule } from 'vitest/node'

const shown = 10

export default class CostTable implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const files = modules
      .map((module) => ({ path: relative('', module.moduleId), cpuS: module.meta().cpuS ?? 0 }))
      .toSorted((a, b) => b.cpuS - a.cpuS)
    const sum = files.reduce((total, { cpuS }) => total + cpuS, 0)
    console.log(`CPU seconds of the test files, without boxes: ${sum.toFixed(0)}`)
    for (const { path, cpuS } of files.slice(0, shown)) console.log(`${cpuS.toFixed(1).padStart(7)}  ${path}`)
  }
}
