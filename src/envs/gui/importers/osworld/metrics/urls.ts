import { parse } from 'tldts'
import {
  type Found,
  type Metric,
  isRecord,
  NotComparable,
  one,
  pythonPattern,
  ruleOf,
  rulesOf,
  sameSet,
  textsOf,
  valueOf,
} from './contract.ts'

/** Names and semantics: desktop_env/evaluators/metrics/chrome.py. */
export const urlMetrics: Readonly<Record<string, Metric>> = {
  is_expected_active_tab: ({ result, expected }) => {
    const url = urlOf(result)
    return url === null ? 0 : one(sameUrl(wantedUrl(expected), url))
  },
  is_expected_active_tab_approximate: ({ result, expected }) => {
    const bare = (text: string) => text.replace(/\?[^#]*/, '')
    const url = urlOf(result)
    return url === null ? 0 : one(bare(wantedUrl(expected)) === bare(url))
  },
  is_expected_url_pattern_match: ({ result, expected }) => {
    const url = urlOf(result)
    if (url === null) return 0
    return one(textsOf(ruleOf(rulesOf(expected), 'expected')).every((pattern) => pythonPattern(pattern).test(url)))
  },
  is_expected_search_query: ({ result, expected }) => {
    const url = urlOf(result)
    const rule = ruleOf(rulesOf(expected), 'expect')
    if (!isRecord(rule) || typeof rule['pattern'] !== 'string') throw new NotComparable('expect.pattern is no text')
    return url === null ? 0 : one(pythonPattern(rule['pattern']).test(url))
  },
  is_expected_tabs: ({ result, expected }) => {
    const tabs = valueOf(result)
    if (!Array.isArray(tabs) || tabs.length === 0) return 0
    const rules = rulesOf(expected)
    requireUrls(rules)
    const wanted = textsOf(ruleOf(rules, 'urls'))
    const urls = tabs.map((tab: unknown) => urlOf({ kind: 'value', value: tab }) ?? '')
    return one(wanted.length === urls.length && wanted.every((url) => urls.some((other) => sameUrl(url, other))))
  },
  is_expected_bookmarks: ({ result, expected }) => {
    const bookmarks = valueOf(result)
    const bar = isRecord(bookmarks) ? childrenOf(bookmarks['bookmark_bar']) : []
    if (bar.length === 0) return 0
    const rules = rulesOf(expected)
    const of = (type: string, member: string) => bar.filter((mark) => mark['type'] === type).map((mark) => mark[member])
    switch (rules['type']) {
      case 'bookmark_bar_folders_names':
        return one(sameSet(of('folder', 'name'), textsOf(ruleOf(rules, 'names'))))
      case 'bookmark_bar_websites_urls':
        return one(sameSet(of('url', 'url'), textsOf(ruleOf(rules, 'urls'))))
      case 'liked_authors_websites_urls': {
        const folder = bar.find((mark) => mark['type'] === 'folder' && mark['name'] === 'Liked Authors')
        const found = childrenOf(folder).map((mark) => mark['url'])
        const wanted = ruleOf(rules, 'urls')
        // For each author one address, of several that lead to the same.
        const choices: readonly (readonly string[])[] = Array.isArray(wanted) ? wanted.map(textsOf) : []
        const each = choices.every((alternatives) => alternatives.some((url) => found.includes(url)))
        return one(
          each &&
            found.every((url) => choices.flat().some((known) => known === url)) &&
            found.length === choices.length,
        )
      }
    }
    throw new NotComparable(`is_expected_bookmarks knows no type ${String(rules['type'])}`)
  },
}

/**
 * Whether two addresses are one, as `compare_urls` of desktop_env/evaluators/metrics/utils.py has it: without `www` where it
 * is the only subdomain, without the public suffix, a lone `/` as path, or the difference of upper and lower case in the host.
 */
export function sameUrl(a: string, b: string): boolean {
  return plainUrl(a) === plainUrl(b)
}

function plainUrl(text: string): string {
  const withScheme = /^[a-zA-Z][a-zA-Z0-9+\-.]*:\/\//.test(text) ? text : `http://${text}`
  const [, scheme = '', netloc = '', path = '', rest = ''] =
    /^([^:]+):\/\/([^/?#]*)([^?#]*)([\s\S]*)$/.exec(withScheme) ?? []
  const host = netloc.toLowerCase().replace(/^.*@/, '')
  const { subdomain, domainWithoutSuffix, isIcann, isIp, hostname } = parse(host, { allowPrivateDomains: false })
  const known = isIcann === true && isIp !== true
  // A host without a public suffix is taken apart at its last dot; an address of numbers stays whole.
  const labels = (hostname ?? host).split('.')
  const domain = known ? (domainWithoutSuffix ?? '') : isIp === true ? (hostname ?? '') : (labels.at(-1) ?? '')
  const below = known ? (subdomain ?? '') : isIp === true ? '' : labels.slice(0, -1).join('.')
  const shown = below === '' || below === 'www' ? domain : `${below}.${domain}`
  return `${scheme.toLowerCase()}://${shown}${path === '/' ? '' : path}${rest.replace(/[?#]$/, '')}`
}

function urlOf(found: Found): string | null {
  const value = valueOf(found)
  const url = isRecord(value) ? value['url'] : value
  return typeof url === 'string' && url !== '' ? url : null
}

function wantedUrl(expected: Found): string {
  const rules = rulesOf(expected)
  requireUrls(rules)
  const url = ruleOf(rules, 'url')
  if (typeof url !== 'string') throw new NotComparable('url is no text')
  return url
}

function requireUrls(rules: Readonly<Record<string, unknown>>): void {
  if (rules['type'] !== 'url') throw new NotComparable(`tabs are compared by type "url", not ${String(rules['type'])}`)
}

function childrenOf(folder: unknown): readonly Readonly<Record<string, unknown>>[] {
  const children: readonly unknown[] = isRecord(folder) && Array.isArray(folder['children']) ? folder['children'] : []
  return children.filter(isRecord)
}
