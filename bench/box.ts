/**
 * What a box costs; the measurement itself is part of the product (`paddock bench box`).
 *
 *   node bench/box.ts [--rounds 200] [--json]
 */
import { benchBox, describeFigure } from '../src/cli/bench/box.ts'
import { readFlags } from './flags.ts'

const { rounds, json } = readFlags({ rounds: 200, json: false }, { rounds: 1 })
const result = await benchBox(rounds)
if (json) console.log(JSON.stringify(result, null, 2))
else for (const [name, value] of Object.entries(result)) console.log(name.padEnd(20), describeFigure(value))
