// Prints `N passed, N failed, N skipped` over vitest's JSON reports: one line, alone, that any CI can read.
// A file that failed although none of its tests did (it did not load, or was stopped) counts as one that failed.
import { readFileSync } from 'node:fs'
const sum = { passed: 0, failed: 0, skipped: 0 }
for (const path of process.argv.slice(2)) {
  const report = JSON.parse(readFileSync(path, 'utf8'))
  sum.passed += report.numPassedTests
  sum.failed += report.numFailedTests
  sum.skipped += report.numPendingTests
  for (const { status, assertionResults } of report.testResults) {
    if (status === 'failed' && assertionResults.every((test) => test.status !== 'failed')) sum.failed += 1
  }
}
console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`)
