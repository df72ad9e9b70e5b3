/** The name of a function that the grammar knows. `root` and `log` take the degree and the base as second, `binomial` two numbers. */
export type FunctionName = string

/** A table in one text: `name:meaning`, or a name that means itself. */
export function tableOf(text: string): Readonly<Record<string, string>> {
  const entries = text.split(' ').map((entry) => entry.split(':'))
  return Object.fromEntries(entries.map(([name = '', meant = name]) => [name, meant]))
}

/** Functions by the names that LaTeX and plain text give them; `log` without a base is to the base of ten. */
export const functionNames: Readonly<Record<string, FunctionName>> = tableOf(
  'sin cos tan cot sec csc asin acos atan arcsin:asin arccos:acos arctan:atan sinh cosh tanh exp ln log lg:log abs Abs:abs floor ceil ' +
    'sqrt:root',
)

/** What `\sin^{-1}` and its kin mean. */
export const inverses: Readonly<Partial<Record<FunctionName, FunctionName>>> = {
  sin: 'asin',
  cos: 'acos',
  tan: 'atan',
}

/** Functions with `f(-x) = -f(x)`. */
export function isOdd(name: FunctionName): boolean {
  return ['sin', 'asin', 'atan', 'sinh', 'tanh'].includes(name)
}

/** Functions with `f(-x) = f(x)`. */
export function isEven(name: FunctionName): boolean {
  return ['cos', 'cosh', 'abs'].includes(name)
}

/** Letters that are written as commands. */
export const greek: ReadonlySet<string> = new Set(
  (
    'alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau upsilon phi ' +
    'varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell hbar'
  ).split(' '),
)

/** Signs of Unicode as LaTeX writes them. */
export const signs: Readonly<Record<string, string>> = Object.fromEntries(
  (
    '−- –- ×\\times ·\\cdot ⋅\\cdot ÷\\div ⁄/ ∕/ ±\\pm ∓\\mp ∞\\infty √\\sqrt °^\\circ ∗* ⩽\\le ⩾\\ge ≤\\le ' +
    '≥\\ge ≠\\ne ∪\\cup ∈\\in ∩\\cap ℝ\\mathbb{R} ∖\\setminus ≡\\equiv →\\to ∧\\land ∨\\lor ∅\\emptyset π\\pi ' +
    'α\\alpha β\\beta γ\\gamma δ\\delta θ\\theta λ\\lambda μ\\mu σ\\sigma φ\\phi ω\\omega'
  )
    .split(' ')
    .map((entry) => [entry.slice(0, 1), entry.length > 2 ? `${entry.slice(1)} ` : entry.slice(1)]),
)
