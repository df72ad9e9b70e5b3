/**
 * What property tests try is the same in every run, here and elsewhere: a run that is red is red again. `SEED=<number>` tries
 * other values; a failure names its seed either way.
 */
import fc from 'fast-check'

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env['SEED'] ?? 20_261_122) })
