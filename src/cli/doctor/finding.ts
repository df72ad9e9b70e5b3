/** One thing that `paddock doctor` looked at. Everything that is not `ok` says what to do. */
export type Finding =
  | { readonly about: string; readonly status: 'ok'; readonly what: string }
  | { readonly about: string; readonly status: 'warning' | 'problem'; readonly what: string; readonly fix: string }

export function ok(about: string, what: string): Finding {
  return { about, status: 'ok', what }
}

export function warning(about: string, what: string, fix: string): Finding {
  return { about, status: 'warning', what, fix }
}

export function problem(about: string, what: string, fix: string): Finding {
  return { about, status: 'problem', what, fix }
}
