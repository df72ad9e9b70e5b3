import type { FunctionName } from './expression.ts'

/** Functions by the names that LaTeX and plain text give them; `log` without a base is to the base of ten. */
export const functionNames: Readonly<Record<string, FunctionName>> = {
  sin: 'sin',
  cos: 'cos',
  tan: 'tan',
  cot: 'cot',
  sec: 'sec',
  csc: 'csc',
  arcsin: 'asin',
  arccos: 'acos',
  arctan: 'atan',
  asin: 'asin',
  acos: 'acos',
  atan: 'atan',
  sinh: 'sinh',
  cosh: 'cosh',
  tanh: 'tanh',
  exp: 'exp',
  ln: 'ln',
  log: 'log',
  lg: 'log',
  abs: 'abs',
  floor: 'floor',
  ceil: 'ceil',
  sqrt: 'root',
}

/** What `\sin^{-1}` and its kin mean. */
export const inverses: Readonly<Partial<Record<FunctionName, FunctionName>>> = {
  sin: 'asin',
  cos: 'acos',
  tan: 'atan',
}

/** Letters that are written as commands. */
export const greek: ReadonlySet<string> = new Set(
  (
    'alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau upsilon phi ' +
    'varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell hbar'
  ).split(' '),
)

/** Signs of Unicode as LaTeX writes them. */
export const signs: Readonly<Record<string, string>> = {
  '−': '-',
  '–': '-',
  '×': '\\times ',
  '·': '\\cdot ',
  '⋅': '\\cdot ',
  '÷': '\\div ',
  '⁄': '/',
  '∕': '/',
  '±': '\\pm ',
  '∓': '\\mp ',
  '∞': '\\infty ',
  '√': '\\sqrt ',
  '°': '^\\circ ',
  '∗': '*',
  '⩽': '\\le ',
  '⩾': '\\ge ',
  '≤': '\\le ',
  '≥': '\\ge ',
  '≠': '\\ne ',
  '∪': '\\cup ',
  '∈': '\\in ',
  '∅': '\\emptyset ',
  π: '\\pi ',
  α: '\\alpha ',
  β: '\\beta ',
  γ: '\\gamma ',
  δ: '\\delta ',
  θ: '\\theta ',
  λ: '\\lambda ',
  μ: '\\mu ',
  σ: '\\sigma ',
  φ: '\\phi ',
  ω: '\\omega ',
  '\u00a0': ' ',
}
