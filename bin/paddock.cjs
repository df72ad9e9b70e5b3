#!/usr/bin/env node
// Plain old JavaScript, so that a Node that cannot read the program says so in one line instead of a SyntaxError.
'use strict'
var version = process.versions.node
var parts = version.split('.').map(Number)
if (parts[0] > 22 || (parts[0] === 22 && parts[1] >= 19)) {
  import('../dist/src/cli/main.js')
} else {
  console.error(
    'paddock: Node ' +
      version +
      ' is too old; 22.19 is the least. Fix: install Node 24, or run npx --package node@24 --package paddock-rl paddock',
  )
  process.exitCode = 3
}
