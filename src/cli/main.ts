#!/usr/bin/env node
import { abortOnSignals, processIo } from './io.ts'
import { runCli } from './program.ts'

const signals = abortOnSignals()
const code = await runCli(process.argv.slice(2), processIo(signals.signal))
signals.release()
process.exitCode = code
