import { defineSelector } from '../selector.ts'
import { firstBy } from './order.ts'

/**
 * Thompson sampling: of each task a pass rate is drawn from its Beta posterior (`a + passed`, `b + failed`), and the tasks
 * whose draw is nearest to `target` are chosen. What is little known is drawn from far and wide, so it is tried.
 */
export const thompsonSelector = defineSelector({
  name: 'thompson',
  apiVersion: 1,
  version: '1.0.0',
  options: {
    target: { default: 0.5, min: 0, max: 1 },
    a: { default: 1, min: 1e-3, max: 1e6 },
    b: { default: 1, min: 1e-3, max: 1e6 },
  },
  choose: ({ options: { target = 0.5, a = 1, b = 1 }, ...choice }) =>
    firstBy(choice, ({ numbers, passed }) => [
      Math.abs(beta(a + passed, b + numbers - passed, choice.random) - target),
    ]),
})

function beta(a: number, b: number, random: () => number): number {
  const [x, y] = [gamma(a, random), gamma(b, random)]
  return x + y === 0 ? 0.5 : x / (x + y)
}

/** Marsaglia and Tsang, "A simple method for generating gamma variables" (2000); below 1 by their section 6. */
function gamma(shape: number, random: () => number): number {
  if (shape < 1) return gamma(shape + 1, random) * (1 - random()) ** (1 / shape)
  const d = shape - 1 / 3
  const c = 1 / Math.sqrt(9 * d)
  for (;;) {
    const x = normal(random)
    const v = (1 + c * x) ** 3
    if (v > 0 && Math.log(1 - random()) < 0.5 * x ** 2 + d - d * v + d * Math.log(v)) return d * v
  }
}

/** Box and Muller. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}
