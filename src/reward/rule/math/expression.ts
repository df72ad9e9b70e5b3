import type { Rational } from './rational.ts'

/** Functions that an expression may call. `root` and `log` take the degree and the base as second, `binomial` two numbers. */
export type FunctionName =
  | 'sin'
  | 'cos'
  | 'tan'
  | 'cot'
  | 'sec'
  | 'csc'
  | 'asin'
  | 'acos'
  | 'atan'
  | 'sinh'
  | 'cosh'
  | 'tanh'
  | 'exp'
  | 'ln'
  | 'log'
  | 'root'
  | 'abs'
  | 'floor'
  | 'ceil'
  | 'factorial'
  | 'binomial'

/** What an answer's text means, before letters have values. `a - b` is a sum with a negative. */
export type Expression =
  | { readonly kind: 'number'; readonly value: Rational; readonly text: string }
  | { readonly kind: 'letter'; readonly name: string }
  | { readonly kind: 'constant'; readonly name: 'pi' | 'e' }
  | { readonly kind: 'negative'; readonly of: Expression }
  | { readonly kind: 'call'; readonly name: FunctionName; readonly of: readonly Expression[] }
  | {
      readonly kind: 'sum' | 'product' | 'quotient' | 'power'
      readonly left: Expression
      readonly right: Expression
    }

/** The letters of an expression, sorted. */
export function lettersOf(of: Expression): readonly string[] {
  const found = new Set<string>()
  const visit = (one: Expression): void => {
    if (one.kind === 'letter') found.add(one.name)
    for (const part of partsOf(one)) visit(part)
  }
  visit(of)
  return [...found].toSorted()
}

function partsOf(of: Expression): readonly Expression[] {
  if (of.kind === 'negative') return [of.of]
  if (of.kind === 'call') return of.of
  return 'left' in of ? [of.left, of.right] : []
}
