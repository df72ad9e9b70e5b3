/**
 * How much of a torture is run: `npm run torture` (also CI) runs a part of the longest
 * ones, `npm run torture:long` all of them. What was run is in each test's name.
 */
export function sized<T>(long: T, short: T): T {
  return process.env['TORTURE'] === 'long' ? long : short
}
